"""Flush positions within a record are no ends of the log: over logs of any records, and over a real one."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence

import psycopg
from hypothesis import given
from hypothesis import strategies as st

from engine.runtime.embedded_postgres import EmbeddedPostgres, _binaries
from engine.sources.postgres.durable_end import DurableEnd
from tests.sources.conftest import Source

PAGE = 8192
SEGMENT = 4 * PAGE


def header(page: int) -> int:
    return 24 if page % SEGMENT else 40


def ends_and_places(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Of each record where it ends, and where the next one would begin: beyond the header of a new page."""
    place, found = PAGE + header(PAGE), []
    for length in lengths:
        end = place
        while length:
            room = PAGE - end % PAGE
            if room == PAGE:
                room -= header(end)
                end += header(end)
            taken = min(room, length)
            end, length = end + taken, length - taken
        place = end if end % PAGE else end + header(end)
        found.append((end, place))
    return found


@given(data=st.data(), lengths=st.lists(st.integers(1, 60_000), min_size=1, max_size=40))
def test_an_end_is_a_records_is_durable_and_comes_in_time(data: st.DataObject, lengths: list[int]) -> None:
    records = ends_and_places(lengths)
    durable, flushed, before = DurableEnd(PAGE, SEGMENT), PAGE, 0
    for newest, (end, place) in enumerate(records):
        known = [each for each, _ in records[: newest + 1]]
        pages = range(PAGE, end + 1, PAGE)
        flushed = max(flushed, data.draw(st.sampled_from([flushed, *known, *pages])))
        found = durable.seen(place, flushed)
        if found is not None:
            assert found in {*known, *(each for _, each in records[: newest + 1])}
            assert before <= found <= flushed
            before = found
    end, place = records[-1]
    assert durable.seen(place, end) == end
    assert durable.seen(place + 100, end + 100) == end + 100


def test_what_was_inserted_at_the_last_look_is_an_end_once_it_is_durable() -> None:
    durable = DurableEnd(PAGE, SEGMENT)
    assert durable.seen(3 * PAGE + 500, 2 * PAGE) is None
    assert durable.seen(9 * PAGE + 700, 5 * PAGE) == 3 * PAGE + 500
    assert durable.seen(12 * PAGE + 900, 8 * PAGE) == 3 * PAGE + 500
    assert durable.seen(20 * PAGE + 900, 15 * PAGE) == 12 * PAGE + 900


def test_a_page_that_is_full_to_its_last_byte_ends_a_record() -> None:
    assert DurableEnd(PAGE, SEGMENT).seen(2 * PAGE + 24, 2 * PAGE) == 2 * PAGE
    assert DurableEnd(PAGE, SEGMENT).seen(2 * PAGE + 40, 2 * PAGE) is None
    assert DurableEnd(PAGE, SEGMENT).seen(4 * PAGE + 40, 4 * PAGE) == 4 * PAGE


def test_every_log_end_of_a_busy_server_is_between_two_records(
    source: Source, postgres: EmbeddedPostgres
) -> None:
    """Records that cross pages, flushed by the WAL writer as they come; the server's tool says where."""
    source.sql("CREATE TABLE t (n int)")
    stop = threading.Event()

    def write() -> None:
        with psycopg.connect(source.dsn) as connection:
            while not stop.is_set():
                connection.execute("INSERT INTO t SELECT n FROM generate_series(1, 20000) n")
                connection.execute("SELECT pg_logical_emit_message(false, 'x', repeat('x', 20000))")
                connection.rollback()

    begin = source.log.log_end()
    flushed = set()
    writer = threading.Thread(target=write)
    writer.start()
    try:
        ends = set()
        while len(ends) < 100:
            ends.add(source.log.log_end().position)
            [[position]] = source.sql("SELECT pg_current_wal_flush_lsn() - '0/0'")
            flushed.add(int(position))
    finally:
        stop.set()
        writer.join()
    places = record_places(postgres, begin.position, max(ends))
    assert {end for end in ends if _is_no_place(end, places)} == set()
    # Without whole records alone it would have been otherwise.
    assert any(_is_no_place(position, places) for position in flushed if position <= max(places))


def _is_no_place(position: int, places: set[int]) -> bool:
    return not places & {position, position + 24, position + 40}


def record_places(postgres: EmbeddedPostgres, begin: int, end: int) -> set[int]:
    """Where records begin, from one at ``begin`` to the first one at or after ``end``."""
    command = [
        str(_binaries() / "pg_waldump"),
        *("--path", str(postgres.folder / "pg_wal"), "--start", f"{begin >> 32:X}/{begin & 0xFFFFFFFF:X}"),
    ]
    found: set[int] = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as dump:
        assert dump.stdout is not None
        for line in dump.stdout:
            high, low = line.partition("lsn: ")[2].partition(",")[0].split("/")
            place = int(high, 16) << 32 | int(low, 16)
            found.add(place)
            if place > end:
                dump.kill()
                break
    return found
