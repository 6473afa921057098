"""Flush positions within a record are no ends of the log: over logs of any records, and over a real one."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence

import psycopg
from hypothesis import given
from hypothesis import strategies as st

from engine.runtime.embedded_postgres import EmbeddedPostgres, _binaries
from engine.sources.postgres.record_end import LogPages
from tests.sources.conftest import Source

PAGE = 8192
SEGMENT = 4 * PAGE
PAGES = LogPages(PAGE, SEGMENT)


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
def test_what_ends_a_record_does_and_the_end_of_all_records_is_known(
    data: st.DataObject, lengths: list[int]
) -> None:
    records = ends_and_places(lengths)
    end, place = records[-1]
    flushed = data.draw(st.sampled_from([*(each for each, _ in records), *range(PAGE, end + 1, PAGE)]))
    # Between the two looks at it the server may have flushed beyond what was inserted at the first.
    inserted = data.draw(st.sampled_from([PAGE + header(PAGE), *(each for _, each in records)]))
    if PAGES.ends_record(flushed, inserted):
        assert flushed in {PAGE, *(each for each, _ in records), *(each for _, each in records)}
    assert PAGES.ends_record(end, place)


def test_a_page_that_is_full_to_its_last_byte_ends_a_record() -> None:
    assert PAGES.ends_record(2 * PAGE, 2 * PAGE + 24)
    assert not PAGES.ends_record(2 * PAGE, 2 * PAGE + 40)
    assert PAGES.ends_record(4 * PAGE, 4 * PAGE + 40)
    assert not PAGES.ends_record(4 * PAGE, 4 * PAGE + 24)
    assert not PAGES.ends_record(2 * PAGE, 3 * PAGE + 500)
    assert PAGES.ends_record(2 * PAGE + 8, 3 * PAGE + 500)


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
            [[position]] = source.sql("SELECT pg_current_wal_flush_lsn() - '0/0'")
            end = source.log.log_end().position
            assert end >= position or _is_page(int(position))
            flushed.add(int(position))
            ends.add(end)
    finally:
        stop.set()
        writer.join()
    source.sql("DROP TABLE t")  # the last end may be the log's: a record has to begin there
    assert source.log.has_grown(begin)
    places = record_places(postgres, begin.position, max(ends))
    assert {end for end in ends if _is_no_place(end, places)} == set()
    # Without whole records alone it would have been otherwise.
    assert any(_is_no_place(position, places) for position in flushed if position <= max(places))


def _is_page(position: int) -> bool:
    return position % PAGE == 0


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
