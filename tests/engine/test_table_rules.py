"""The checks of sys.sp_cdc_enable_table, one by one (reference/procedures.md, 2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import errors
from engine.model.capture_instance import CaptureInstance
from engine.procedures.table_rules import (
    EnablePlan,
    EnableRequest,
    check_parameters,
    filegroup,
    partition_note,
    partition_switch,
    plan,
)
from engine.sources.base import SourceColumn, SourceIndex, SourceTable
from tests.control.conftest import an_instance


def column(name: str, number: int, nullable: bool = True, is_computed: bool = False) -> SourceColumn:
    return SourceColumn(name, number, "integer", "int", nullable, is_computed)


PRIMARY_KEY = SourceIndex("department_pkey", ("id",), True, True, True)
DEPARTMENT = SourceTable(
    16400,
    "hr",
    "department",
    (column("id", 1, nullable=False), column("name", 3, nullable=False), column("budget", 4)),
    (
        PRIMARY_KEY,
        SourceIndex("by_name", ("name",), False, True, True),
        SourceIndex("by_budget", ("budget",), False, True, True),
        SourceIndex("plain", ("name",), False, False, True),
        SourceIndex("broken", ("name",), False, True, False),
    ),
    -1,
)
WITHOUT_KEY = replace(DEPARTMENT, indexes=DEPARTMENT.indexes[1:])


def request(**given: Any) -> EnableRequest:
    return replace(EnableRequest("hr", "department", None), **given)


def planned(
    table: SourceTable = DEPARTMENT, existing: tuple[CaptureInstance, ...] = (), **given: Any
) -> EnablePlan:
    asked = request(**given)
    check_parameters(asked)
    return plan(asked, table, existing)


def refused(error: type[errors.CdcError], table: SourceTable = DEPARTMENT, **given: Any) -> None:
    with pytest.raises(error):
        planned(table, **given)


# Parameters


@pytest.mark.parametrize("given", [{"source_schema": ""}, {"source_name": ""}, {"source_name": None}])
def test_schema_and_name_must_be_given(given):
    refused(errors.ParameterEmpty, **given)


def test_tables_of_schema_cdc_are_refused():
    refused(errors.TableInCdcSchema, source_schema="cdc")


@pytest.mark.parametrize("role", ["", "   "])
def test_an_empty_role_is_refused_and_none_is_no_role(role):
    refused(errors.RoleNameEmpty, role_name=role)
    assert planned(role_name=None).role_name is None


def test_a_role_is_right_trimmed():
    assert planned(role_name=" readers  ").role_name == " readers"
    refused(errors.RoleNameInvalid, role_name="a\x00b")


@pytest.mark.parametrize("name", ["supports_net_changes", "allow_partition_switch"])
def test_bits_are_0_or_1(name):
    refused(errors.NotABit, **{name: 2})
    planned(**{name: 1})


def test_a_filegroup_is_primary_or_a_tablespace_of_the_source():
    assert filegroup(None, list) is None
    assert filegroup("primary", list) == "PRIMARY"
    assert filegroup("fast", lambda: ["pg_default", "Fast"]) == "Fast"
    with pytest.raises(errors.FilegroupInvalid):
        filegroup("slow", lambda: ["pg_default", "Fast"])


# Name


def test_the_name_is_derived_from_schema_and_table():
    assert planned().capture_instance == "hr_department"


def test_a_name_is_right_trimmed():
    assert planned(capture_instance="departments  ").capture_instance == "departments"
    refused(errors.ParameterEmpty, capture_instance="  ")


def test_a_name_has_100_characters_at_most():
    assert planned(capture_instance="x" * 100 + "  ")
    refused(errors.CaptureInstanceNameTooLong, capture_instance="x" * 101)


def test_a_name_is_an_identifier():
    refused(errors.CaptureInstanceNameInvalid, capture_instance="a\nb")


def test_a_name_is_unique_in_the_database():
    with pytest.raises(errors.CaptureInstanceExists):
        planned(existing=(an_instance(name="hr_department", table="other"),))


def test_a_table_has_two_instances_at_most():
    existing = (an_instance(1, "a"), an_instance(2, "b"))
    with pytest.raises(errors.TooManyInstances):
        planned(existing=existing, capture_instance="c")
    assert planned(existing=existing[:1], capture_instance="c")


# Row identifier


def test_the_primary_key_identifies_rows():
    made = planned()
    assert (made.index_name, made.supports_net_changes) == ("department_pkey", True)
    assert [(one.column_name, one.index_ordinal, one.column_id) for one in made.index_columns] == [
        ("id", 1, 1)
    ]


def test_the_primary_key_is_adopted_even_without_net_changes():
    made = planned(supports_net_changes=0)
    assert (made.index_name, made.supports_net_changes) == ("department_pkey", False)


def test_an_index_given_goes_over_the_primary_key():
    assert planned(index_name="by_name").index_name == "by_name"


def test_without_a_key_there_are_no_net_changes():
    made = planned(WITHOUT_KEY)
    assert (made.index_name, made.supports_net_changes, made.index_columns) == (None, False, ())
    refused(errors.NoRowIdentifier, WITHOUT_KEY, supports_net_changes=1)
    assert planned(WITHOUT_KEY, index_name="by_name").supports_net_changes


@pytest.mark.parametrize(
    ("index", "error"),
    [
        ("nothing", errors.IndexMissing),
        ("plain", errors.IndexNotUnique),
        ("by_budget", errors.IndexNullable),
        ("broken", errors.IndexDisabled),
    ],
)
def test_an_index_must_be_able_to_identify_rows(index, error):
    refused(error, index_name=index)


def test_net_changes_take_14_key_columns_at_most():
    columns = tuple(column(f"c{n}", n, nullable=False) for n in range(1, 16))
    key = SourceIndex("pk", tuple(one.name for one in columns), True, True, True)
    table = replace(DEPARTMENT, columns=columns, indexes=(key,))
    refused(errors.TooManyIndexColumns, table)
    assert planned(table, supports_net_changes=0)


# Columns


def test_all_columns_are_captured_by_default():
    assert [(one.column_name, one.column_ordinal, one.column_id) for one in planned().columns] == [
        ("id", 1, 1),
        ("name", 2, 3),
        ("budget", 3, 4),
    ]


def test_listed_columns_are_numbered_in_the_order_of_the_table():
    made = planned(captured_column_list="budget, id")
    assert [(one.column_name, one.column_ordinal) for one in made.columns] == [("id", 1), ("budget", 2)]


def test_a_listed_column_must_be_there():
    refused(errors.ColumnMissing, captured_column_list="id, salary")


def test_the_identifier_must_be_captured():
    refused(errors.IdentifierNotCaptured, captured_column_list="name")


@pytest.mark.parametrize(
    "name", ["__$start_lsn", "__$end_lsn", "__$seqval", "__$operation", "__$update_mask"]
)
def test_metadata_columns_are_reserved(name):
    table = replace(DEPARTMENT, columns=(*DEPARTMENT.columns, column(name, 9)))
    refused(errors.ReservedColumnName, table)
    assert planned(table, captured_column_list="id")


def test_the_mask_has_1024_bits():
    columns = tuple(column(f"c{n}", n) for n in range(1, 1026))
    refused(errors.TooManyColumns, replace(DEPARTMENT, columns=columns, indexes=()))
    assert planned(replace(DEPARTMENT, columns=columns[:-1], indexes=()))


@given(st.sets(st.sampled_from(["id", "name", "budget"])), st.sampled_from([None, 0, 1]))
def test_ordinals_count_from_one_without_gaps(listed, net):
    try:
        made = planned(captured_column_list=",".join(sorted(listed)), supports_net_changes=net)
    except errors.CdcError:
        assert "id" not in listed
        return
    assert [one.column_ordinal for one in made.columns] == list(range(1, len(listed) + 1))
    assert {one.column_name for one in made.columns} == listed
    assert {one.column_name for one in made.index_columns} <= listed


# Partitions


@pytest.mark.parametrize(
    ("partitioned", "allowed", "refuses", "number", "kept"),
    [
        (True, 1, True, 22855, True),
        (True, 1, False, 22855, True),
        (True, 0, True, 22856, False),
        (True, 0, False, 22856, False),
        (False, 1, True, None, True),
        (False, 0, True, 22857, True),
    ],
)
def test_what_partition_switch_comes_to(partitioned, allowed, refuses, number, kept):
    table, asked = replace(DEPARTMENT, is_partitioned=partitioned), request(allow_partition_switch=allowed)
    note = partition_note(asked, table, refuses)
    assert (None if note is None else note.number) == number
    assert note is None or note.severity == 10
    assert note is None or ("not refused" in str(note)) == (number == 22856 and not refuses)
    assert partition_switch(asked, table) is kept
