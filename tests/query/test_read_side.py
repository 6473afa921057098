"""The reference's samples over a real source: PostgreSQL, a scan, Delta, the query functions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import DataFrame

from dashboard.snapshot import SnapshotFeed
from engine.errors import InvalidObjectName, RangeOutsideValidity, SelectDenied
from engine.lake.tail import TableTail
from engine.model.lsn import Lsn
from engine.query.mask_columns import is_bit_set
from tests.capture.conftest import DATABASE, Workbench

INSTANCE = "HR_Department"


@pytest.fixture
def department(workbench: Workbench) -> Workbench:
    """The department table of the samples with two rows, enabled as HR_Department and captured."""
    workbench.sql("CREATE TABLE department (id int PRIMARY KEY, name text NOT NULL UNIQUE, group_name text)")
    workbench.sql("INSERT INTO department VALUES (1, 'Engineering', 'R&D'), (2, 'Tools', 'Inventory')")
    workbench.enable("department", capture_instance=INSTANCE)
    workbench.drain()
    return workbench


def rows(found: DataFrame) -> list[dict[str, Any]]:
    return found.toArrow().to_pylist()


def valid(bench: Workbench) -> tuple[Any, Any]:
    return bench.engine.get_min_lsn(DATABASE, INSTANCE), bench.engine.get_max_lsn(DATABASE)


def test_net_changes_of_the_sample(department: Workbench) -> None:
    department.sql("INSERT INTO department VALUES (3, 'MyDept', 'MyNewGroup')")
    department.sql("UPDATE department SET group_name = 'Control' WHERE group_name = 'Inventory'")
    department.sql("DELETE FROM department WHERE name = 'MyDept'")
    department.drain()
    found = department.engine.get_net_changes(DATABASE, INSTANCE, *valid(department), "all")
    [row] = rows(found)
    assert (row["__$operation"], row["__$update_mask"]) == (4, None)
    assert (row["id"], row["name"], row["group_name"]) == (2, "Tools", "Control")


def test_a_key_update_is_a_delete_and_an_insert(department: Workbench) -> None:
    department.sql("UPDATE department SET id = 9 WHERE id = 1")
    department.drain()
    found = rows(department.engine.get_all_changes(DATABASE, INSTANCE, *valid(department)))
    assert [(row["__$operation"], row["id"]) for row in found] == [(1, 1), (2, 9)]
    for option, operations in (("all", {1: 1, 9: 2}), ("all with merge", {1: 1, 9: 5})):
        net = rows(department.engine.get_net_changes(DATABASE, INSTANCE, *valid(department), option))
        assert {row["id"]: row["__$operation"] for row in net} == operations


def test_the_history_of_a_row_is_what_spark_finds_of_it_newest_first(department: Workbench) -> None:
    for statement in (
        "UPDATE department SET name = 'Tooling' WHERE id = 2",
        "DELETE FROM department WHERE id = 1",
        "UPDATE department SET name = 'Workshop' WHERE id = 2",
        "DELETE FROM department WHERE id = 2",
        "INSERT INTO department VALUES (2, 'Again', NULL)",
    ):
        department.sql(statement)
        department.drain()
    engine = department.engine
    found = engine.row_history(DATABASE, INSTANCE, {"id": 2}, 100).to_pylist()
    spark = engine.get_all_changes(DATABASE, INSTANCE, *valid(department), "all update old")
    keys = ("__$start_lsn", "__$seqval", "__$operation")
    assert [row["__$operation"] for row in found] == [2, 1, 4, 3, 4, 3]
    assert sorted(tuple(row[each] for each in keys) for row in found) == sorted(
        tuple(row[each] for each in keys) for row in rows(spark.where("id = 2"))
    )
    assert engine.row_history(DATABASE, INSTANCE, {"id": 2}, 3).to_pylist() == found[:3]
    without_group = engine.row_history(DATABASE, INSTANCE, {"id": 2, "group_name": None}, 9)
    assert without_group["name"].to_pylist() == ["Again"]


def test_the_next_batch_begins_after_the_last(department: Workbench) -> None:
    engine = department.engine
    department.sql("INSERT INTO department VALUES (3, 'Sales', 'S')")
    department.drain()
    first, last = valid(department)
    assert [row["id"] for row in rows(engine.get_all_changes(DATABASE, INSTANCE, first, last))] == [3]
    following = engine.increment_lsn(last)
    assert rows(engine.get_all_changes(DATABASE, INSTANCE, following, last)) == []
    department.sql("DELETE FROM department WHERE id = 3")
    department.drain()
    now = engine.get_max_lsn(DATABASE)
    assert [
        row["__$operation"] for row in rows(engine.get_all_changes(DATABASE, INSTANCE, following, now))
    ] == [1]
    before = engine.decrement_lsn(now)
    assert [row["id"] for row in rows(engine.get_all_changes(DATABASE, INSTANCE, first, before))] == [3]


def test_the_mask_says_which_column_an_update_changed(department: Workbench) -> None:
    engine = department.engine
    department.sql("UPDATE department SET group_name = 'G'")
    department.sql("UPDATE department SET name = upper(name) WHERE id = 1")
    department.drain()
    found = engine.get_all_changes(DATABASE, INSTANCE, *valid(department))
    ordinal = engine.get_column_ordinal(DATABASE, INSTANCE, "group_name")
    assert ordinal == 3
    flagged = found.select("id", "`__$update_mask`", is_bit_set(ordinal).alias("IsGroupNmUpdated"))
    answers = rows(flagged)
    assert [(row["id"], row["IsGroupNmUpdated"]) for row in answers] == [(1, True), (2, True), (1, False)]
    for row in answers:
        mask = row["__$update_mask"]
        assert engine.is_bit_set(ordinal, mask) == row["IsGroupNmUpdated"]
        assert engine.has_column_changed(DATABASE, INSTANCE, "group_name", mask) == row["IsGroupNmUpdated"]
    net = rows(engine.get_net_changes(DATABASE, INSTANCE, *valid(department), "all with mask"))
    assert {row["id"]: row["__$update_mask"] for row in net} == {1: b"\x06", 2: b"\x04"}


def test_a_table_without_a_key_has_no_net_function(workbench: Workbench) -> None:
    workbench.sql("CREATE TABLE note (text text)")
    workbench.enable("note")
    workbench.sql("INSERT INTO note VALUES ('a'), ('a')")
    workbench.drain()
    engine = workbench.engine
    ends = engine.get_min_lsn(DATABASE, "public_note"), engine.get_max_lsn(DATABASE)
    with pytest.raises(InvalidObjectName, match=r"'cdc\.fn_cdc_get_net_changes_public_note'"):
        engine.get_net_changes(DATABASE, "public_note", *ends)
    assert len(rows(engine.get_all_changes(DATABASE, "public_note", *ends))) == 2


def test_changes_by_the_times_of_their_commits(department: Workbench) -> None:
    engine = department.engine
    for statement in (
        "INSERT INTO department VALUES (3, 'Sales', 'S')",
        "UPDATE department SET group_name = 'T' WHERE id = 3",
        "DELETE FROM department WHERE id = 2",
    ):
        department.sql(statement)
    department.drain()
    whole = rows(
        engine.all_changes_by_time(
            DATABASE, INSTANCE, row_filter_option="all update old", update_flag_list="group_name"
        )
    )
    assert [(row["id"], row["__CDC_OPERATION"], row["group_name_uflag"]) for row in whole] == [
        (3, "I", None),
        (3, "UO", None),
        (3, "UN", True),
        (2, "D", None),
    ]
    times = [engine.map_lsn_to_time(DATABASE, valid(department)[0])]
    times += [row["tran_end_time"] for row in department.mapping()]
    cuts = sorted({time for time in times if time is not None})
    parts = [
        row["__CDC_STARTLSN"]
        for start, end in pairwise(cuts)
        for row in rows(engine.all_changes_by_time(DATABASE, INSTANCE, start, end, "all update old"))
    ]
    assert parts == [row["__CDC_STARTLSN"] for row in whole]
    net = rows(engine.net_changes_by_time(DATABASE, INSTANCE, cuts[0], cuts[-1], column_list="name, id"))
    assert sorted(tuple(row.values()) for row in net) == [("Sales", 3, "I"), ("Tools", 2, "D")]


def test_who_may_not_select_is_told_before_anything_is_read(department: Workbench) -> None:
    department.sql("DROP ROLE IF EXISTS query_reader")
    department.sql("CREATE ROLE query_reader")
    try:
        ends = valid(department)
        with pytest.raises(SelectDenied):
            department.engine.get_all_changes(DATABASE, INSTANCE, *ends, principal="query_reader")
        department.sql("GRANT SELECT ON department TO query_reader")
        found = department.engine.get_all_changes(DATABASE, INSTANCE, *ends, principal="query_reader")
        assert rows(found) == []
    finally:
        department.sql("DROP OWNED BY query_reader")
        department.sql("DROP ROLE query_reader")


def test_an_answer_keeps_its_rows_when_cleanup_passes_it(department: Workbench) -> None:
    department.sql("UPDATE department SET name = 'Tooling' WHERE id = 2")
    department.drain()
    engine, (low, high) = department.engine, valid(department)
    answers = [
        engine.get_all_changes(DATABASE, INSTANCE, low, high),
        engine.get_net_changes(DATABASE, INSTANCE, low, high),
        engine.all_changes_by_time(DATABASE, INSTANCE),
        engine.net_changes_by_time(DATABASE, INSTANCE),
    ]
    files = engine.change_files(DATABASE, INSTANCE, low, high)
    before = [sorted(map(str, rows(answer))) for answer in answers]
    engine.cleanup_change_table(DATABASE, INSTANCE, high)
    assert [sorted(map(str, rows(answer))) for answer in answers] == before
    assert sum(batch.num_rows for batch in files.rows()) == len(before[0])
    with pytest.raises(RangeOutsideValidity):
        engine.get_all_changes(DATABASE, INSTANCE, low, high)


def test_a_low_watermark_has_the_time_of_its_commit_once_cleanup_has_moved_it(department: Workbench) -> None:
    department.sql("UPDATE department SET name = 'Tooling' WHERE id = 2")
    department.drain()
    engine, (low, high) = department.engine, valid(department)
    feed = SnapshotFeed(lambda: engine)
    try:
        view = feed.look_at(DATABASE)
        instance = view.instance(INSTANCE)
        low_time, high_time = (engine.map_lsn_to_time(DATABASE, lsn) for lsn in (low, high))
        assert view.low_time(instance) == low_time
        assert engine.map_lsns_to_times(DATABASE, [Lsn.ZERO]) == {}
        engine.register_client(DATABASE, "etl", INSTANCE)
        engine.acknowledge(DATABASE, "etl", INSTANCE, high.previous())
        feed.refresh()
        assert low_time <= feed.look_at(DATABASE).commit_times[high.previous()] < high_time
        engine.drop_client(DATABASE, "etl", INSTANCE)
        engine.cleanup_change_table(DATABASE, INSTANCE, high)
        feed.refresh()
        view = feed.look_at(DATABASE)
        assert high.previous() not in view.commit_times
        assert view.low_time(view.instance(INSTANCE)) == engine.map_lsn_to_time(DATABASE, high)
        assert view.low_time(view.instance(INSTANCE)) == view.watermarks.last_commit_time
    finally:
        feed.close()


def test_a_version_that_cleanup_made_meanwhile_is_no_answer_to_an_older_range(
    department: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the call's first look at the low endpoint and its choice of a version."""
    department.sql("UPDATE department SET name = 'Tooling' WHERE id = 2")
    department.drain()
    engine, (low, high) = department.engine, valid(department)
    newest = TableTail.version

    def after_cleanup(tail: TableTail, path: str) -> int | None:
        monkeypatch.undo()
        engine.cleanup_change_table(DATABASE, INSTANCE, high)
        return newest(tail, path)

    monkeypatch.setattr(TableTail, "version", after_cleanup)
    with pytest.raises(RangeOutsideValidity):
        engine.get_all_changes(DATABASE, INSTANCE, low, high)
