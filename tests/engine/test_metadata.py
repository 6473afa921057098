"""What the engine says of capture instances, and to whom."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from engine.control import Publication
from engine.errors import (
    AgentNotRunning,
    CdcError,
    DatabaseNotEnabled,
    InvalidObjectName,
    ObjectDenied,
    ParameterEmpty,
    WrapperInstanceMissing,
)
from engine.model.lsn import Lsn
from engine.model.mask import mask_of
from engine.sources.base import LogIdentity

_numbers = itertools.count(1)

TYPES = """
CREATE DOMAIN hr.money AS numeric(10, 2);
CREATE TABLE hr.types (
    id bigint PRIMARY KEY,
    gone int,
    code character varying(20),
    fixed char(3),
    free text,
    price numeric(12, 2),
    any_number numeric,
    ratio double precision,
    day date,
    at timestamp(3) with time zone,
    tags text[],
    paid hr.money);
ALTER TABLE hr.types DROP COLUMN gone
"""


@pytest.fixture
def instance(engine, enabled, sql):
    return engine.enable_table(enabled, "hr", "department", role_name=None)


@pytest.fixture
def principal(sql):
    """A role of the source without any right."""
    name = f"clerk {next(_numbers)}"
    sql(f'CREATE ROLE "{name}"')
    yield name
    sql(f'DROP OWNED BY "{name}"; DROP ROLE "{name}"')


@pytest.fixture
def gate(sql):
    """The name of a gating role; it goes after the test, whoever made it."""
    name = f"gate{next(_numbers)}"
    yield name
    sql(f"DROP ROLE IF EXISTS {name}")


def test_captured_columns_have_the_source_types_facts(engine, enabled, sql):
    sql(TYPES)
    engine.enable_table(enabled, "hr", "types", role_name=None)
    rows = engine.get_captured_columns(enabled, "hr_types")
    assert {(r.source_schema, r.source_table, r.capture_instance) for r in rows} == {
        ("hr", "types", "hr_types")
    }
    assert [
        (
            r.column_name,
            r.column_id,
            r.column_ordinal,
            r.data_type,
            r.character_maximum_length,
            r.numeric_precision,
            r.numeric_precision_radix,
            r.numeric_scale,
            r.datetime_precision,
        )
        for r in rows
    ] == [
        ("id", 1, 1, "bigint", None, 19, 10, 0, None),
        ("code", 3, 2, "character varying", 20, None, None, None, None),
        ("fixed", 4, 3, "character", 3, None, None, None, None),
        ("free", 5, 4, "text", -1, None, None, None, None),
        ("price", 6, 5, "numeric", None, 12, 10, 2, None),
        ("any_number", 7, 6, "numeric", None, None, 10, None, None),
        ("ratio", 8, 7, "double precision", None, 53, 2, None, None),
        ("day", 9, 8, "date", None, None, None, None, 0),
        ("at", 10, 9, "timestamp with time zone", None, None, None, None, 3),
        ("tags", 11, 10, "text[]", None, None, None, None, None),
        ("paid", 12, 11, "hr.money", None, None, None, None, None),
    ]


def test_captured_columns_of_nothing_are_refused(engine, enabled):
    with pytest.raises(ObjectDenied) as denied:
        engine.get_captured_columns(enabled, "nothing")
    assert denied.value.number == 22981
    with pytest.raises(ParameterEmpty):
        engine.get_captured_columns(enabled, "")


def test_captured_columns_need_an_enabled_database(engine, hr):
    with pytest.raises(DatabaseNotEnabled):
        engine.get_captured_columns(hr, "hr_department")


def test_ordinals_count_captured_columns(engine, enabled):
    engine.enable_table(enabled, "hr", "department", role_name=None, captured_column_list='id, "a,b", budget')
    columns = ("id", "budget", "a,b", "name", "ID")
    found = [engine.get_column_ordinal(enabled, "hr_department", column) for column in columns]
    assert found == [1, 2, 3, None, None]
    assert engine.get_column_ordinal(enabled, "nothing", "id") is None


def test_a_change_is_read_off_the_mask(engine, enabled, instance):
    mask = mask_of([3], 4)
    ordinal = engine.get_column_ordinal(enabled, "hr_department", "budget")
    assert engine.is_bit_set(ordinal, mask)
    assert not engine.is_bit_set(ordinal, None)
    asked = [
        engine.has_column_changed(enabled, "hr_department", column, mask)
        for column in ("budget", "name", "nothing")
    ]
    assert asked == [True, False, None]
    assert engine.has_column_changed(enabled, "hr_department", "budget", None) is False


def refusal(question, *arguments, **options):
    """The error that a question meets; None without one."""
    try:
        question(*arguments, **options)
    except CdcError as error:
        return error.line()
    return None


def answers(engine, database, principal):
    """What the questions about hr_department say to the principal."""
    name = "hr_department"
    return {
        "help": [i.capture_instance for i in engine.help_change_data_capture(database, principal=principal)],
        "columns": refusal(engine.get_captured_columns, database, name, principal=principal),
        "ordinal": engine.get_column_ordinal(database, name, "name", principal=principal),
        "changed": engine.has_column_changed(database, name, "name", b"\x02", principal=principal),
        "wrappers": len(engine.generate_wrapper_function(database, principal=principal)),
        "queries": [
            refusal(query, database, name, Lsn.ZERO, Lsn.MAX, principal=principal)
            for query in (engine.get_all_changes, engine.get_net_changes)
        ],
        "by time": [
            refusal(query, database, name, principal=principal)
            for query in (engine.all_changes_by_time, engine.net_changes_by_time)
        ],
    }


SELECT_DENIED = [
    "Msg 229, Level 14, State 5: The SELECT permission was denied on the object "
    f"'fn_cdc_get_{kind}_changes_hr_department', database 'hr', schema 'cdc'."
    for kind in ("all", "net")
]
DENIED = {
    "help": [],
    "columns": "Msg 22981, Level 16, State 1: The object does not exist, or access is denied.",
    "ordinal": None,
    "changed": None,
    "wrappers": 0,
    "queries": SELECT_DENIED,
    "by time": SELECT_DENIED,
}
# Past the rule they want Spark, which is not there.
NO_SPARK = [AgentNotRunning("queries need it").line()] * 2
ALLOWED = {
    "help": ["hr_department"],
    "columns": None,
    "ordinal": 2,
    "changed": True,
    "wrappers": 2,
    "queries": NO_SPARK,
    "by time": NO_SPARK,
}


def test_a_role_reads_what_it_may_select(engine, enabled, instance, principal, sql):
    assert answers(engine, enabled, principal) == DENIED
    sql(f'GRANT SELECT ON hr.department TO "{principal}"')
    assert answers(engine, enabled, principal) == ALLOWED
    sql(f'REVOKE SELECT ON hr.department FROM "{principal}"')
    assert answers(engine, enabled, principal) == DENIED
    assert answers(engine, enabled, None) == ALLOWED
    assert answers(engine, enabled, "nobody at all") == DENIED


def test_a_gating_role_lets_only_members_in(engine, enabled, principal, gate, sql):
    engine.enable_table(enabled, "hr", "department", role_name=gate)
    sql(f'GRANT SELECT ON hr.department TO "{principal}"')
    assert answers(engine, enabled, principal) == DENIED
    sql(f'GRANT {gate} TO "{principal}"')
    assert answers(engine, enabled, principal) == ALLOWED


def test_the_low_endpoint_is_zero_for_who_may_not_read(engine, enabled, control, instance, principal, sql):
    lease = control.leases.acquire(enabled, "test", 30)
    met = replace(instance, start_lsn=Lsn.at(7))
    at = Lsn.at(9)
    log = LogIdentity("1", 1, "slot")
    control.publish(Publication(enabled, lease.token, at, at, at, None, log, recognised=(met,)))
    assert engine.get_min_lsn(enabled, "hr_department") == Lsn.at(7)
    assert engine.get_min_lsn(enabled, "hr_department", principal) == Lsn.ZERO
    sql(f'GRANT SELECT ON hr.department TO "{principal}"')
    assert engine.get_min_lsn(enabled, "hr_department", principal) == Lsn.at(7)


def test_an_instance_that_is_not_to_be_read_is_not_scripted(engine, enabled, instance, principal):
    with pytest.raises(WrapperInstanceMissing):
        engine.generate_wrapper_function(enabled, "hr_department", principal=principal)


def test_help_on_a_table_is_filtered_as_well(engine, enabled, instance, principal):
    assert engine.help_change_data_capture(enabled, "hr", "department") == [instance]
    assert engine.help_change_data_capture(enabled, "hr", "department", principal) == []


def test_a_query_function_that_is_not_there_is_error_208_to_anyone(engine, enabled, principal):
    engine.enable_table(enabled, "hr", "note", role_name=None)
    for kind, name in ((engine.get_all_changes, "nothing"), (engine.get_net_changes, "hr_note")):
        with pytest.raises(InvalidObjectName):
            kind(enabled, name, Lsn.ZERO, Lsn.MAX, principal=principal)
