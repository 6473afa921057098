"""sys.sp_cdc_cleanup_change_table on real change tables (reference/procedures.md, 4)."""

from __future__ import annotations

import pytest

from engine.errors import (
    LowWatermarkNotMapped,
    LowWatermarkOutsideTimeline,
    ObjectDenied,
    ParameterEmpty,
    RangeOutsideValidity,
    ThresholdOutOfRange,
)
from engine.model.capture_instance import CaptureInstance
from engine.model.lsn import Lsn
from tests.capture.conftest import DATABASE, Workbench


@pytest.fixture
def t(workbench: Workbench) -> CaptureInstance:
    """A tracked table with transactions 1, 2, 3 … 6 of as many rows; each drain made a file of its own."""
    workbench.sql("CREATE TABLE t (id int PRIMARY KEY, tran int)")
    workbench.enable("t")
    for number in (1, 2, 3):
        workbench.sql(
            f"INSERT INTO t SELECT {number * 100} + n, {number} FROM generate_series(1, {number}) n"
        )
    workbench.drain()
    for number in (4, 5, 6):
        workbench.sql(
            f"INSERT INTO t SELECT {number * 100} + n, {number} FROM generate_series(1, {number}) n"
        )
    workbench.drain()
    return workbench.engine.help_change_data_capture(DATABASE)[0]


def fill(workbench: Workbench, number: int) -> None:
    rows = f"SELECT {number * 100} + n, {number} FROM generate_series(1, {number}) n"
    workbench.sql(f"INSERT INTO t {rows}")


def commit_of(workbench: Workbench, transaction: int) -> Lsn:
    row = next(row for row in workbench.rows("public_t") if row["tran"] == transaction)
    return Lsn.parse(row["__$start_lsn"])


def transactions(workbench: Workbench) -> list[int]:
    return sorted(row["tran"] for row in workbench.rows("public_t"))


def versions(workbench: Workbench) -> list[str]:
    path = workbench.lake.change_table(DATABASE, "public_t")
    history = workbench.spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()
    return [row.operation for row in sorted(history, key=lambda row: row.version)]


def test_rows_below_the_watermark_go_and_equal_ones_stay(workbench, t):
    watermark = commit_of(workbench, 3)
    outcome = workbench.engine.cleanup_change_table(DATABASE, "public_t", watermark)
    assert (outcome.low_endpoint, outcome.deleted_rows, outcome.cleanup_failed) == (watermark, 3, False)
    assert transactions(workbench) == [3] * 3 + [4] * 4 + [5] * 5 + [6] * 6
    assert workbench.engine.get_min_lsn(DATABASE, "public_t") == watermark
    high = workbench.engine.get_max_lsn(DATABASE)
    with pytest.raises(RangeOutsideValidity):
        workbench.engine.get_all_changes(DATABASE, "public_t", t.start_lsn, high)
    valid = workbench.engine.get_all_changes(DATABASE, "public_t", watermark, high)
    assert valid.count() == 18


def test_no_statement_deletes_more_than_the_threshold(workbench, t):
    before = len(versions(workbench))
    workbench.engine.cleanup_change_table(DATABASE, "public_t", commit_of(workbench, 3), threshold=2)
    # The file at the boundary is parted first, which changes no row.
    assert versions(workbench)[before:] == ["OPTIMIZE", "DELETE", "DELETE"]
    assert transactions(workbench) == [3] * 3 + [4] * 4 + [5] * 5 + [6] * 6


def test_whole_files_go_in_one_statement(workbench, t):
    before = len(versions(workbench))
    workbench.engine.cleanup_change_table(DATABASE, "public_t", commit_of(workbench, 4), threshold=1)
    assert versions(workbench)[before:] == ["DELETE"]
    workbench.engine.cleanup_change_table(DATABASE, "public_t", commit_of(workbench, 6), threshold=5)
    assert versions(workbench)[before:] == ["DELETE", "OPTIMIZE", "DELETE", "DELETE"]
    assert transactions(workbench) == [6] * 6


def test_null_deletes_what_is_left_below_the_low_endpoint(workbench, t):
    workbench.control.low_endpoints.raise_one(t.object_id, commit_of(workbench, 2))
    outcome = workbench.engine.cleanup_change_table(DATABASE, "public_t", None)
    assert outcome.deleted_rows == 1
    assert workbench.engine.cleanup_change_table(DATABASE, "public_t", None).deleted_rows == 0


def test_capture_goes_on_over_a_cleaned_table(workbench, t):
    scan = workbench.scan()
    workbench.drain(scan)
    workbench.sql("INSERT INTO t VALUES (701, 7)")
    workbench.engine.cleanup_change_table(DATABASE, "public_t", commit_of(workbench, 6))
    workbench.drain(scan)
    workbench.sql("UPDATE t SET tran = 8 WHERE id = 701")
    workbench.drain()
    assert transactions(workbench) == [6] * 6 + [7, 7, 8]
    newest = workbench.engine.newest_changes(DATABASE, 3, "public_t")
    assert newest is not None
    assert newest["public_t"]["tran"].to_pylist()[-3:] == [7, 7, 8]


def test_of_transactions_with_one_time_the_first_is_taken(workbench, t):
    mapping = {row["start_lsn"]: row for row in workbench.mapping()}
    path = workbench.lake.lsn_time_mapping(DATABASE)
    first, second = commit_of(workbench, 2), commit_of(workbench, 3)
    time = mapping[str(second)]["tran_end_time"].isoformat()
    workbench.spark.sql(
        f"UPDATE delta.`{path}` SET tran_end_time = TIMESTAMP '{time}' WHERE start_lsn = '{first}'"
    )
    outcome = workbench.engine.cleanup_change_table(DATABASE, "public_t", second)
    assert (outcome.low_endpoint, outcome.deleted_rows) == (first, 1)


def test_what_is_wrong_changes_nothing(workbench, t):
    clean = workbench.engine.cleanup_change_table
    with pytest.raises(ParameterEmpty):
        clean(DATABASE, "", None)
    with pytest.raises(ObjectDenied):
        clean(DATABASE, "nobody", None)
    with pytest.raises(ThresholdOutOfRange):
        clean(DATABASE, "public_t", None, threshold=0)
    between = Lsn.at(commit_of(workbench, 3).position + 1)
    with pytest.raises(LowWatermarkNotMapped, match="not the start_lsn"):
        clean(DATABASE, "public_t", between)
    clean(DATABASE, "public_t", commit_of(workbench, 5))
    mapped = Lsn.parse(workbench.mapping()[1]["start_lsn"])
    with pytest.raises(LowWatermarkOutsideTimeline, match="public_t"):
        clean(DATABASE, "public_t", mapped)
    assert transactions(workbench) == [5] * 5 + [6] * 6


def test_a_failure_is_reported_and_the_low_endpoint_stays_moved(workbench, t):
    watermark = commit_of(workbench, 5)
    path = workbench.lake.change_table(DATABASE, "public_t")
    workbench.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    outcome = workbench.engine.cleanup_change_table(DATABASE, "public_t", watermark)
    assert (outcome.cleanup_failed, outcome.deleted_rows, outcome.low_endpoint) == (True, 0, watermark)
    assert outcome.message.startswith("Msg 22852, Level 10")
    assert workbench.engine.get_min_lsn(DATABASE, "public_t") == watermark
    workbench.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
    assert workbench.engine.cleanup_change_table(DATABASE, "public_t", None).deleted_rows == 10
