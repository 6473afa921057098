"""Changing over to a second capture instance: the next step is what the metadata says, nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from dashboard.migration import (
    MAX_NAME,
    ColumnChange,
    Step,
    clients_of,
    column_changes,
    differences,
    free_name,
    has_reached,
    migration,
    second,
    wanted_columns,
)
from engine.model.capture_instance import CaptureInstance
from engine.model.client import Client
from engine.model.ddl_history import DdlHistoryRow, SchemaChange
from engine.model.lsn import Lsn
from engine.model.table_shape import ShapeColumn
from tests.control.conftest import an_instance

ID, NAME = ShapeColumn(1, "id", "integer", "int"), ShapeColumn(3, "name", "text", "string")
SECRET, ADDED = ShapeColumn(2, "secret", "text", "string"), ShapeColumn(4, "added", "date", "date")
AT_FIRST = (ID, SECRET, NAME)

shapes = st.lists(
    st.builds(
        ShapeColumn, st.integers(1, 6), st.sampled_from("abc"), st.sampled_from(["int", "text"]), st.just("x")
    ),
    unique_by=lambda column: column.column_id,
)


def instance(
    columns: tuple[ShapeColumn, ...] = AT_FIRST, number: int = 1, name: str = "d"
) -> CaptureInstance:
    """It captures id and name; ``columns`` is the source as the log was read."""
    return replace(an_instance(number, name), source_columns=columns)


def altered(of: CaptureInstance, before: tuple[ShapeColumn, ...] | None) -> SchemaChange:
    row = DdlHistoryRow("hr", "d", of.capture_instance, False, "ALTER", Lsn.at(9), datetime.now(UTC))
    return SchemaChange(row, before, None if before is None else of.source_columns)


def a_client(of: str, acknowledged: int | None) -> Client:
    """A consumer of an instance that has come so far."""
    at = datetime.now(UTC)
    lsn = None if acknowledged is None else Lsn.at(acknowledged)
    return Client("hr", of, "warehouse", lsn, at, at, None, None, at)


@given(shapes, shapes)
def test_each_column_of_either_shape_is_compared_once(
    before: list[ShapeColumn], after: list[ShapeColumn]
) -> None:
    found = column_changes(before, after)
    assert [(c.before, c.before_type) for c in found if c.before] == [
        (c.name, c.source_type) for c in sorted(before, key=lambda c: c.column_id)
    ]
    assert [(c.after, c.after_type) for c in found if c.after] == [
        (c.name, c.source_type) for c in sorted(after, key=lambda c: c.column_id)
    ]
    assert all(bool(c.what) == ((c.before, c.before_type) != (c.after, c.after_type)) for c in found)


def test_a_column_left_out_on_purpose_is_no_difference_but_one_added_later_is() -> None:
    assert differences(instance(), []) == []
    now = instance((*AT_FIRST, ADDED))
    changes = [altered(now, AT_FIRST)]
    assert differences(now, changes) == [ColumnChange(None, "", "added", "date", "added")]
    assert wanted_columns(now, changes) == ["id", "name", "added"]
    renamed = instance((ID, SECRET, replace(NAME, name="title")))
    assert [each.what for each in differences(renamed, [altered(renamed, AT_FIRST)])] == ["renamed"]
    assert wanted_columns(renamed, []) == ["id", "title"]
    dropped = instance((ID, SECRET))
    assert [each.what for each in differences(dropped, [altered(dropped, AT_FIRST)])] == ["dropped"]


def test_the_metadata_says_which_step_is_next() -> None:
    high = Lsn.at(100)
    alone = replace(instance(), start_lsn=Lsn.at(1))
    assert migration([alone], [], high).step is Step.CHANGED
    assert not migration([alone], [], high).is_needed

    old = replace(instance((ID, SECRET, NAME, ADDED)), start_lsn=Lsn.at(1))
    changes = [altered(old, AT_FIRST)]
    assert migration([old], changes, high).step is Step.SECOND

    unmet = replace(an_instance(2, "d_v2"), columns=())
    assert migration([unmet, old], changes, high).step is Step.OVERLAP
    assert migration([replace(unmet, start_lsn=Lsn.at(101)), old], changes, high).step is Step.OVERLAP
    at = migration([replace(unmet, start_lsn=Lsn.at(100)), old], changes, high)
    assert (at.step, at.old.capture_instance, at.is_crowded) == (Step.CONSUMERS, "d", False)

    behind = replace(old, object_id=2, capture_instance="d_v2", start_lsn=Lsn.at(50))
    assert migration([old, behind], [*changes, altered(behind, AT_FIRST)], high).is_crowded


@given(st.none() | st.integers(1, 200), st.integers(1, 200))
def test_a_consumer_may_change_over_once_it_has_acknowledged_the_place(
    acknowledged: int | None, place: int
) -> None:
    client = a_client("d", acknowledged)
    assert clients_of([client, a_client("other", acknowledged)], instance()) == [client]
    assert has_reached(client, Lsn.at(place)) == (acknowledged is not None and acknowledged >= place)


@given(st.text("ab_v29", min_size=1, max_size=MAX_NAME), st.integers(0, 3))
def test_the_name_of_the_second_instance_is_free_and_short_enough(name: str, taken: int) -> None:
    names = [name]
    for number in range(taken + 1):
        found = free_name(instance(name=names[0]), [instance(name=each) for each in names])
        assert found.lower() not in {each.lower() for each in names}, number
        assert len(found) <= MAX_NAME
        names.append(found)


def test_the_second_instance_is_enabled_as_the_first_but_for_name_and_columns() -> None:
    old = replace(instance((ID, SECRET, NAME, ADDED)), role_name="readers", partition_switch=False)
    call = second(old, "d_v2", ["id", "added"])
    assert (call.capture_instance, call.captured_columns) == ("d_v2", ("id", "added"))
    assert (call.role_name, call.index_name, call.supports_net_changes) == (
        "readers",
        "department_pkey",
        True,
    )
    assert not call.allow_partition_switch
    assert second(old, "d_v2", ["id", "secret", "name", "added"]).captured_columns is None
