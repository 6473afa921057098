"""Readers, cleanup and capture at once: an answer is whole for its range, or the range is refused."""

from __future__ import annotations

from collections import Counter
from threading import Event, Thread

from engine.engine import Engine
from engine.errors import RangeOutsideValidity
from tests.capture.conftest import DATABASE, Workbench
from tests.cleanup.conftest import commits, write

TRANSACTIONS = 9


class Reader:
    """Asks for the whole validity interval again and again, as it is at each moment."""

    def __init__(self, engine: Engine, number: int) -> None:
        self.answers: list[Counter[int]] = []
        self.refused = 0
        self.failures: list[BaseException] = []
        self._engine = engine
        self._ask = (self._all, self._net, self._files)[number % 3]
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self.answers.append(Counter(self._ask()))
                except RangeOutsideValidity:
                    self.refused += 1
        except BaseException as error:
            self.failures.append(error)
            raise

    def _all(self) -> list[int]:
        return [row["tran"] for row in self._engine.get_all_changes(*self._range()).collect()]

    def _net(self) -> list[int]:
        return [row["tran"] for row in self._engine.get_net_changes(*self._range()).collect()]

    def _files(self) -> list[int]:
        found = self._engine.change_files(*self._range())
        return [number for batch in found.rows() for number in batch.column("tran").to_pylist()]

    def _range(self):
        low = self._engine.get_min_lsn(DATABASE, "public_t")
        return DATABASE, "public_t", low, self._engine.get_max_lsn(DATABASE)


def test_answers_are_whole_while_cleanup_and_capture_go_on(aged_anew: Workbench) -> None:
    """Transaction n has n rows: one that is there in part, or is missing between others, would show."""
    aged = aged_anew
    readers = [Reader(aged.engine, number) for number in range(3)]
    try:
        for number in range(7, TRANSACTIONS + 1):
            write(aged, number)
            # Of six transactions the oldest goes.
            aged.engine.cleanup_change_table(DATABASE, "public_t", commits(aged)[number - 5], 20)
    finally:
        for reader in readers:
            reader.stop()
    assert [reader.failures for reader in readers] == [[]] * len(readers)
    for reader in readers:
        assert reader.answers
        for answer in reader.answers:
            first, last = min(answer), max(answer)
            assert answer == {number: number for number in range(first, last + 1)}
        # Low endpoints and the high watermark only go up.
        assert [min(answer) for answer in reader.answers] == sorted(min(a) for a in reader.answers)
        assert [max(answer) for answer in reader.answers] == sorted(max(a) for a in reader.answers)
