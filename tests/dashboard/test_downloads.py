"""Files for downloads: whole or not there, in no memory, and gone with their tab."""

from __future__ import annotations

import gc
import io
import tracemalloc
from collections.abc import Callable, Generator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dashboard import downloads
from dashboard.downloads import Download, Downloads, Rows, Shelf
from dashboard.exports import CSV, FORMATS, PARQUET, ROW_GROUP, ExportFormat, export, write
from dashboard.operations import Cancelled, Operation
from engine.errors import DownloadTooLarge

SCHEMA = pa.schema([("__$start_lsn", pa.string()), ("id", pa.int64()), ("mask", pa.binary())])
EACH = 8192


def part(number: int) -> pa.Table:
    ids = range(number * EACH, (number + 1) * EACH)
    return pa.table([[f"0x{i:020X}" for i in ids], list(ids), [b"\x07"] * EACH], schema=SCHEMA)


def rows(count: int, each: Callable[[int], None] = lambda number: None) -> Rows:
    def parts() -> Generator[pa.Table]:
        for number in range(count):
            each(number)
            yield part(number)

    return SCHEMA, parts()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return Shelf()


def prepare(
    shelf: Shelf, read: Callable[[], Rows], wanted: ExportFormat = CSV, work: Operation | None = None
) -> Download:
    shelf.prepare("asked", "public_t", wanted, read, lambda: None, work or Operation("k", "t"))
    assert shelf.ready is not None
    return shelf.ready


@pytest.mark.parametrize("wanted", FORMATS, ids=lambda each: each.extension)
def test_parts_make_the_file_that_the_whole_makes(wanted: ExportFormat) -> None:
    file, told = io.BytesIO(), []
    assert write(SCHEMA, rows(9)[1], wanted, file, told.append) == 9 * EACH
    assert told == [EACH * (n + 1) for n in range(9)]
    whole = pa.concat_tables(rows(9)[1])
    if wanted is PARQUET:
        read = pq.ParquetFile(file)
        assert read.read().equals(whole)
        assert read.metadata.row_group(0).num_rows == ROW_GROUP
    else:
        assert file.getvalue() == export(whole, wanted)


@pytest.mark.parametrize("wanted", FORMATS, ids=lambda each: each.extension)
def test_no_row_makes_a_file_all_the_same(wanted: ExportFormat) -> None:
    file = io.BytesIO()
    assert write(SCHEMA, [], wanted, file) == 0
    if wanted is PARQUET:
        assert pq.read_table(file).equals(SCHEMA.empty_table())
    else:
        assert file.getvalue() == export(SCHEMA.empty_table(), wanted)


def test_a_file_is_ready_when_it_is_whole(shelf: Shelf) -> None:
    seen = []
    found = prepare(shelf, lambda: rows(3, lambda number: seen.append(shelf.ready)), PARQUET)
    assert seen == [None] * 3
    assert (found.rows, found.name) == (3 * EACH, "public_t.parquet")
    assert found.size == found.file.stat().st_size
    assert pq.read_table(found.file).num_rows == 3 * EACH


def test_memory_holds_a_part_not_the_whole(shelf: Shelf) -> None:
    prepare(shelf, lambda: rows(1))
    pa.default_memory_pool().release_unused()
    before, most = pa.total_allocated_bytes(), 0

    def look(_number: int) -> None:
        nonlocal most
        gc.collect()
        most = max(most, pa.total_allocated_bytes() - before)

    tracemalloc.start()
    found = prepare(shelf, lambda: rows(200, look))
    python = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.size > 60_000_000
    assert most + python < found.size / 2


def test_the_file_before_goes(shelf: Shelf) -> None:
    first = prepare(shelf, lambda: rows(1)).file
    second = prepare(shelf, lambda: rows(1)).file
    assert not first.exists()
    assert second.exists()


def test_a_cancelled_one_leaves_nothing(shelf: Shelf, tmp_path: Path) -> None:
    work = Operation("k", "t")
    with pytest.raises(Cancelled):
        prepare(shelf, lambda: rows(3, lambda number: work.cancel() if number else None), work=work)
    assert shelf.ready is None
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_a_failed_one_leaves_nothing(shelf: Shelf, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        prepare(shelf, lambda: rows(3, lambda number: number // (1 - number)))
    assert shelf.ready is None
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_a_disk_is_not_filled(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "RESERVE", 1 << 62)
    with pytest.raises(DownloadTooLarge) as refused:
        prepare(shelf, lambda: rows(1))
    assert refused.value.number == 50113
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_a_file_goes_with_its_tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    known = Downloads()
    shelf = known.shelf()
    token = shelf.token
    prepare(shelf, lambda: rows(1))
    assert known.ready(token) is shelf.ready
    del shelf
    gc.collect()
    assert known.ready(token) is None
    assert list(tmp_path.iterdir()) == []


def test_files_go_at_the_end_of_the_process_though_tabs_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    known = Downloads()
    shelves = [known.shelf(), known.shelf()]
    prepare(shelves[0], lambda: rows(1))
    known.close()
    assert list(tmp_path.iterdir()) == []
    assert [known.ready(shelf.token) for shelf in shelves] == [None, None]
