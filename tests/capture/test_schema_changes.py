"""DDL on tracked tables in log order, with event triggers and without (reference/behaviour.md, 6)."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from decimal import Decimal
from threading import Event, Thread
from typing import Any

import psycopg
import pytest

from engine.capture.crash_points import CrashPoint, CrashPoints
from engine.errors import (
    CapturedColumnChanged,
    DdlNotProcessed,
    IndexNullable,
    OldRowsMissing,
    TableNotMarked,
)
from engine.model.capture_instance import CaptureInstance
from engine.model.change import LEADING_COLUMNS
from engine.model.job import CaptureParameters
from tests.capture.conftest import DATABASE, Workbench


@pytest.fixture
def t(workbench: Workbench) -> CaptureInstance:
    workbench.sql("CREATE TABLE t (id int PRIMARY KEY, v text, n int)")
    return workbench.enable("t")


@pytest.fixture
def untold(workbench: Workbench, t: CaptureInstance) -> CaptureInstance:
    """The same where the connecting role may not create event triggers."""
    workbench.sql("DROP EVENT TRIGGER highwater_ddl")
    workbench.sql("DROP EVENT TRIGGER highwater_drop")
    return t


def images(workbench: Workbench, name: str = "public_t") -> list[tuple[Any, ...]]:
    """Operation and captured values of each row, in log order."""
    rows = workbench.rows(name)
    order = ("__$start_lsn", "__$command_id", "__$seqval", "__$operation")
    rows.sort(key=lambda row: tuple(row[column] for column in order))
    captured = (
        [column for column in rows[0] if column not in (*LEADING_COLUMNS, "__$command_id")] if rows else []
    )
    return [(row["__$operation"], *(row[column] for column in captured)) for row in rows]


def history(workbench: Workbench, name: str = "public_t") -> list[tuple[str, bool]]:
    return [
        (row.ddl_command, row.required_column_update) for row in workbench.control.ddl.list(DATABASE, name)
    ]


def described(workbench: Workbench, name: str = "public_t") -> CaptureInstance:
    found = workbench.control.instances.get(DATABASE, name)
    assert found is not None
    return found


def test_an_added_column_is_ignored_and_noted(workbench, t):
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.sql("ALTER TABLE t ADD extra text")
    workbench.sql("UPDATE t SET extra = 'only here'")
    workbench.sql("INSERT INTO t VALUES (2, 'b', 2, 'x')")
    workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1), (2, 2, "b", 2)]
    assert history(workbench) == [("ALTER TABLE t ADD extra text", False)]
    assert described(workbench).column_names == ("id", "v", "n")
    (change,) = workbench.engine.schema_changes(DATABASE)
    assert [column.name for column in change.columns_before] == ["id", "v", "n"]
    assert [column.name for column in change.columns_after] == ["id", "v", "n", "extra"]
    assert [change.history] == workbench.engine.get_ddl_history(DATABASE, "public_t")


def test_a_history_row_has_the_commit_of_its_ddl(workbench, t):
    before = datetime.now(UTC)
    workbench.sql("ALTER TABLE t ADD extra text")
    workbench.drain()
    (row,) = workbench.engine.get_ddl_history(DATABASE, "public_t")
    assert (row.source_schema, row.source_table, row.capture_instance) == ("public", "t", "public_t")
    assert row.ddl_lsn.raw > described(workbench).start_lsn.raw
    assert row.ddl_lsn == workbench.control.watermarks.get(DATABASE).high
    assert before <= row.ddl_time <= datetime.now(UTC)


def test_a_dropped_column_is_null_from_then_on_in_before_images_too(workbench, t):
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.sql("ALTER TABLE t DROP n")
    workbench.sql("UPDATE t SET v = 'b'")
    workbench.sql("DELETE FROM t")
    workbench.drain()
    assert images(workbench) == [
        (2, 1, "a", 1),
        (3, 1, "a", None),
        (4, 1, "b", None),
        (1, 1, "b", None),
    ]
    assert described(workbench).column_names == ("id", "v", "n")


def test_a_column_dropped_and_added_under_its_name_is_another(workbench, t):
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.sql("ALTER TABLE t DROP n; ALTER TABLE t ADD n int")
    workbench.sql("INSERT INTO t VALUES (2, 'b', 2)")
    workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1), (2, 2, "b", None)]


def test_a_column_added_and_dropped_again_leaves_the_rest(workbench, t):
    workbench.sql("ALTER TABLE t ADD n2 int")
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1, 9)")
    workbench.sql("ALTER TABLE t DROP n2")
    workbench.sql("INSERT INTO t VALUES (2, 'b', 2)")
    workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1), (2, 2, "b", 2)]
    assert [command for command, _ in history(workbench)] == [
        "ALTER TABLE t ADD n2 int",
        "ALTER TABLE t DROP n2",
    ]


@pytest.mark.parametrize("told", [True, False])
def test_a_renamed_column_goes_on_under_the_name_it_was_captured_by(workbench, t, told):
    if not told:
        workbench.sql("DROP EVENT TRIGGER highwater_ddl")
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.sql("ALTER TABLE t RENAME v TO words")
    workbench.sql("UPDATE t SET words = 'b'")
    workbench.drain()
    workbench.sql("INSERT INTO t VALUES (2, 'c', 2)")
    workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1), (3, 1, "a", 1), (4, 1, "b", 1), (2, 2, "c", 2)]
    assert history(workbench) == [("ALTER TABLE t RENAME v TO words" if told else "", False)]
    assert described(workbench).column_names == ("id", "v", "n")
    assert described(workbench).source_names() == ("id", "words", "n")


@pytest.fixture
def typed(workbench: Workbench) -> CaptureInstance:
    """A table o.w with columns of types of the user's."""
    workbench.sql("CREATE SCHEMA o")
    workbench.sql("CREATE TYPE mood AS ENUM ('sad')")
    workbench.sql("CREATE TYPE pair AS (a int, m mood)")
    workbench.sql("CREATE DOMAIN price AS numeric(6, 2)")
    workbench.sql("CREATE TABLE o.w (id int PRIMARY KEY, m mood, ms mood[], p pair, d price)")
    return workbench.engine.enable_table(DATABASE, "o", "w", role_name=None)


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("ALTER TYPE mood RENAME TO feeling", {"m": "public.feeling", "ms": "public.feeling[]"}),
        ("ALTER TYPE mood SET SCHEMA o", {"m": "o.mood", "ms": "o.mood[]"}),
        ("ALTER TYPE pair ADD ATTRIBUTE b int", {}),
        ("ALTER DOMAIN price RENAME TO cost", {"d": "public.cost"}),
        ("ALTER DOMAIN price SET SCHEMA o", {"d": "o.price"}),
    ],
)
@pytest.mark.parametrize("read_before", [True, False])
def test_a_renamed_type_leaves_its_statement_and_goes_on(workbench, typed, statement, changed, read_before):
    scan = workbench.scan()
    workbench.sql("INSERT INTO o.w VALUES (1, 'sad', '{sad}', '(1,sad)', 1.5)")
    if read_before:
        workbench.drain(scan)
    workbench.sql(statement)
    workbench.sql("UPDATE o.w SET d = 2.5")
    workbench.drain(scan)
    same = ("sad", ["sad"], "(1,sad)")
    now = ("sad", ["sad"], "(1,sad,)") if "ATTRIBUTE" in statement else same
    assert images(workbench, "o_w") == [
        (2, 1, *same, Decimal("1.50")),
        (3, 1, *now, Decimal("1.50")),
        (4, 1, *now, Decimal("2.50")),
    ]
    assert history(workbench, "o_w") == [(statement, False)]
    types = {column.column_name: column.column_type for column in typed.columns}
    found = {column.column_name: column.column_type for column in described(workbench, "o_w").columns}
    assert found == types | changed


@pytest.mark.parametrize(
    ("statement", "gone"),
    [
        ("DROP TYPE pair CASCADE", 3),
        ("DROP DOMAIN price CASCADE", 4),
        ("DROP TYPE mood CASCADE", 1),
        ("CREATE SCHEMA s2; ALTER TYPE mood SET SCHEMA s2; DROP SCHEMA s2 CASCADE", 1),
    ],
)
def test_a_column_that_goes_with_its_type_leaves_the_statement(workbench, typed, statement, gone):
    values = (1, "sad", ["sad"], "(1,sad)", Decimal("1.50"))
    scan = workbench.scan()
    workbench.sql("INSERT INTO o.w VALUES (1, 'sad', '{sad}', '(1,sad)', 1.5)")
    workbench.drain(scan)
    workbench.sql(statement)
    workbench.sql("DELETE FROM o.w")
    workbench.drain(scan)
    mood = gone == 1
    left = [None if place == gone or (mood and place == 2) else value for place, value in enumerate(values)]
    left[3] = "(1)" if mood else left[3]
    assert images(workbench, "o_w") == [(2, *values), (1, *left)]
    assert history(workbench, "o_w")[-1] == (statement, False)
    assert described(workbench, "o_w").source_names()[gone] is None


def test_a_renamed_schema_leaves_its_statement(workbench, typed):
    workbench.sql("ALTER SCHEMA o RENAME TO other")
    workbench.sql("INSERT INTO other.w (id) VALUES (1)")
    workbench.drain()
    assert images(workbench, "o_w") == [(2, 1, None, None, None, None)]
    assert history(workbench, "o_w") == [("ALTER SCHEMA o RENAME TO other", False)]
    assert described(workbench, "o_w").source_schema == "other"
    workbench.engine.disable_table(DATABASE, "other", "w", "o_w")


def test_a_typed_table_follows_its_type(workbench):
    workbench.sql("CREATE TYPE row_of AS (id int, v text)")
    workbench.sql("CREATE TABLE y OF row_of")
    workbench.enable("y")
    workbench.sql("INSERT INTO y VALUES (1, 'a')")
    statements = [
        "ALTER TYPE row_of ALTER ATTRIBUTE id TYPE bigint CASCADE",
        "ALTER TYPE row_of RENAME ATTRIBUTE v TO words CASCADE",
        "ALTER TYPE row_of DROP ATTRIBUTE words CASCADE",
    ]
    for number, statement in enumerate(statements, 2):
        workbench.sql(statement)
        workbench.sql(f"INSERT INTO y (id) VALUES ({number})")
    workbench.drain()
    assert images(workbench, "public_y") == [(2, 1, "a"), (2, 2, None), (2, 3, None), (2, 4, None)]
    assert history(workbench, "public_y") == [
        (statement, number == 0) for number, statement in enumerate(statements)
    ]


@pytest.mark.parametrize("told", [True, False])
def test_names_that_change_places_are_told_apart(workbench, t, told):
    if not told:
        workbench.sql("DROP EVENT TRIGGER highwater_ddl")
    workbench.sql("ALTER TABLE t ADD w text")
    workbench.drain()
    workbench.sql(
        "BEGIN; ALTER TABLE t RENAME v TO x; ALTER TABLE t RENAME w TO v; ALTER TABLE t RENAME x TO w; COMMIT"
    )
    workbench.sql("INSERT INTO t (id, v, w) VALUES (1, 'new v', 'old v')")
    workbench.drain()
    assert images(workbench) == [(2, 1, "old v", None)]
    assert described(workbench).source_names() == ("id", "w", "n")


@pytest.mark.parametrize(
    ("old", "value", "new", "using", "before", "after"),
    [
        ("int", "1", "bigint", "c", 1, 1),
        ("int", "1", "numeric(12,2)", "c", Decimal("1.00"), Decimal("1.00")),
        ("int", "7", "text", "c::text", "7", "7"),
        ("text", "'12'", "int", "c::int", 12, 12),
        ("bytea", r"'\xdeadBEEF'", "text", "c::text", r"\xdeadbeef", r"\xdeadbeef"),
        ("date", "'2024-02-29'", "timestamp", "c", datetime(2024, 2, 29), datetime(2024, 2, 29)),
        (
            "timestamptz",
            "'2024-02-29 12:00+00'",
            "text",
            "c::text",
            "2024-02-29 12:00:00+00",
            "2024-02-29 12:00:00+00",
        ),
        ("int[]", "'{1,NULL,3}'", "bigint[]", "c", [1, None, 3], [1, None, 3]),
        ("numeric(9,2)", "1.25", "numeric", "c", "1.25", "1.25"),
        ("boolean", "true", "text", "c::text", "true", "true"),
    ],
)
def test_a_type_change_alters_the_change_table_and_converts_its_rows(
    workbench, old, value, new, using, before, after
):
    workbench.sql("SET timezone = 'UTC'")
    workbench.sql(f"CREATE TABLE u (id int PRIMARY KEY, c {old})")
    workbench.enable("u")
    workbench.sql(f"INSERT INTO u VALUES (1, {value})")
    workbench.sql("INSERT INTO u VALUES (2, NULL)")
    statement = f"ALTER TABLE u ALTER c TYPE {new} USING {using}"
    workbench.sql(statement)
    workbench.sql("INSERT INTO u SELECT 3, c FROM u WHERE id = 1")
    workbench.drain()
    assert images(workbench, "public_u") == [(2, 1, before), (2, 2, None), (2, 3, after)]
    assert history(workbench, "public_u") == [(statement, True)]
    assert described(workbench, "public_u").columns[1].column_type != old
    changes = workbench.engine.get_all_changes(
        DATABASE,
        "public_u",
        described(workbench, "public_u").start_lsn,
        workbench.engine.get_max_lsn(DATABASE),
    )
    assert [row["c"] for row in changes.toArrow().to_pylist()] == [before, None, after]
    newest = workbench.engine.newest_changes(DATABASE, 10, "public_u")
    assert newest is not None
    assert newest["public_u"]["c"].to_pylist() == [before, None, after]


def test_a_longer_varchar_is_a_type_change_without_new_rows(workbench):
    workbench.sql("CREATE TABLE u (id int PRIMARY KEY, c varchar(5))")
    workbench.enable("u")
    workbench.sql("INSERT INTO u VALUES (1, 'abc')")
    workbench.sql("ALTER TABLE u ALTER c TYPE varchar(50)")
    workbench.sql("INSERT INTO u VALUES (2, 'abcdefgh')")
    workbench.drain()
    assert images(workbench, "public_u") == [(2, 1, "abc"), (2, 2, "abcdefgh")]
    assert described(workbench, "public_u").columns[1].column_type == "character varying(50)"
    assert history(workbench, "public_u")[0][1] is True


def test_a_type_change_is_seen_without_event_triggers(workbench, untold):
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.sql("ALTER TABLE t ALTER n TYPE bigint")
    workbench.sql("INSERT INTO t VALUES (2, 'b', 3000000000)")
    workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1), (2, 2, "b", 3000000000)]
    assert history(workbench) == [("", True)]


def test_a_dropped_column_is_seen_without_event_triggers(workbench, untold):
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.sql("ALTER TABLE t DROP v")
    workbench.sql("INSERT INTO t VALUES (2, 2)")
    workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1), (2, 2, None, 2)]


def test_what_cannot_be_told_without_event_triggers_stops_the_scan(workbench, untold):
    workbench.sql("ALTER TABLE t RENAME n TO m")
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.sql("ALTER TABLE t DROP m; ALTER TABLE t ADD w int")
    with pytest.raises(DdlNotProcessed, match="'m'"):
        workbench.drain()
    assert workbench.control.watermarks.get(DATABASE).high is None


@pytest.mark.parametrize("inserted_before", [True, False])
def test_a_column_made_anew_without_event_triggers_stops_the_scan(workbench, untold, inserted_before):
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.drain()
    if inserted_before:
        workbench.sql("INSERT INTO t VALUES (2, 'b', 2)")
    workbench.sql("ALTER TABLE t DROP n; ALTER TABLE t ADD n int")
    workbench.sql("INSERT INTO t VALUES (3, 'c', 3)")
    for _ in range(2):
        with pytest.raises(DdlNotProcessed, match="'n'"):
            workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1)]
    workbench.engine.disable_table(DATABASE, "public", "t", "public_t")
    workbench.enable("t")
    workbench.sql("INSERT INTO t VALUES (4, 'd', 4)")
    workbench.drain()
    assert images(workbench) == [(2, 4, "d", 4)]


def test_a_name_of_in_between_is_known_by_its_place_without_event_triggers(workbench, untold):
    workbench.sql("ALTER TABLE t RENAME v TO w")
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.sql("ALTER TABLE t RENAME w TO x")
    workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1)]


def test_a_column_made_anew_elsewhere_is_told_apart_by_the_order(workbench, untold):
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.sql("ALTER TABLE t DROP v; ALTER TABLE t ADD v text")
    workbench.sql("INSERT INTO t VALUES (2, 2, 'b')")
    workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1), (2, 2, None, 2)]


def test_a_conversion_that_fails_can_be_tried_again_and_ended_by_disabling(workbench, t):
    workbench.sql("INSERT INTO t VALUES (1, 'words', 1)")
    workbench.sql("ALTER TABLE t ALTER v TYPE int USING length(v)")
    workbench.sql("INSERT INTO t VALUES (2, 7, 2)")
    for _ in range(2):
        with pytest.raises(
            CapturedColumnChanged, match="'v' of capture instance 'public_t' changed from text"
        ):
            workbench.drain()
    workbench.engine.disable_table(DATABASE, "public", "t", "public_t")
    workbench.enable("t")
    workbench.sql("INSERT INTO t VALUES (3, 8, 3)")
    workbench.drain()
    assert images(workbench) == [(2, 3, 8, 3)]


@pytest.mark.parametrize("told", [True, False])
def test_a_renamed_table_goes_on_and_its_metadata_follows(workbench, t, told):
    if not told:
        workbench.sql("DROP EVENT TRIGGER highwater_ddl")
    workbench.sql("CREATE SCHEMA other")
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.sql("ALTER TABLE t RENAME TO u; ALTER TABLE u SET SCHEMA other")
    workbench.sql("INSERT INTO other.u VALUES (2, 'b', 2)")
    workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1), (2, 2, "b", 2)]
    assert (described(workbench).source_schema, described(workbench).source_table) == ("other", "u")
    workbench.engine.disable_table(DATABASE, "other", "u", "public_t")


def test_of_a_renamed_table_the_second_instance_lives_when_the_first_is_disabled(workbench, t):
    workbench.sql("ALTER TABLE t RENAME TO u")
    workbench.enable("u")
    workbench.engine.disable_table(DATABASE, "public", "u", "public_t")
    workbench.sql("INSERT INTO u VALUES (1, 'a', 1)")
    workbench.drain()
    assert images(workbench, "public_u") == [(2, 1, "a", 1)]


def test_a_dropped_table_takes_its_metadata_along(workbench, t):
    workbench.enable("t", capture_instance="second")
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.drain()
    workbench.sql("DROP TABLE t")
    workbench.drain()
    assert workbench.engine.help_change_data_capture(DATABASE) == []
    assert workbench.engine.help_jobs(DATABASE) == []
    assert workbench.sql("SELECT * FROM cdc.tracked_tables") == []
    assert workbench.sql("SELECT * FROM cdc.tracked_indexes") == []


def test_a_table_made_anew_under_its_name_is_captured_anew(workbench, t):
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.drain()
    workbench.sql("DROP TABLE t")
    workbench.sql("CREATE TABLE t (id int PRIMARY KEY, other text)")
    workbench.sql("INSERT INTO t VALUES (1, 'not captured')")
    again = workbench.enable("t")
    workbench.sql("INSERT INTO t VALUES (2, 'captured')")
    workbench.drain()
    assert images(workbench) == [(2, 2, "captured")]
    assert described(workbench).object_id == again.object_id


def test_ddl_and_rows_in_one_transaction(workbench, t):
    workbench.sql(
        "BEGIN; INSERT INTO t VALUES (1, 'a', 1); ALTER TABLE t ALTER n TYPE bigint; "
        "INSERT INTO t VALUES (2, 'b', 3000000000); ALTER TABLE t DROP v; INSERT INTO t VALUES (3, 3); COMMIT"
    )
    workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1), (2, 2, "b", 3000000000), (2, 3, None, 3)]
    assert len({row["__$start_lsn"] for row in workbench.rows("public_t")}) == 1
    assert [
        row["__$command_id"] for row in sorted(workbench.rows("public_t"), key=lambda row: row["id"])
    ] == [1, 2, 3]
    assert len(workbench.mapping()) == 2  # the enabling, and this one


def test_ddl_rolled_back_leaves_nothing(workbench, t):
    workbench.sql("BEGIN; ALTER TABLE t DROP v; ROLLBACK")
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1)]
    assert history(workbench) == []


def test_two_instances_through_a_schema_switch_share_positions(workbench, t):
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.sql("ALTER TABLE t ADD extra text")
    workbench.enable("t", capture_instance="second")
    workbench.sql("INSERT INTO t VALUES (2, 'b', 2, 'x')")
    workbench.sql("UPDATE t SET extra = 'y' WHERE id = 1")
    workbench.sql("UPDATE t SET v = 'c' WHERE id = 2")
    workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1), (2, 2, "b", 2), (3, 2, "b", 2), (4, 2, "c", 2)]
    assert images(workbench, "second") == [
        (2, 2, "b", 2, "x"),
        (3, 1, "a", 1, None),
        (4, 1, "a", 1, "y"),
        (3, 2, "b", 2, "x"),
        (4, 2, "c", 2, "x"),
    ]
    positions = [
        {(row["__$start_lsn"], row["__$seqval"], row["__$operation"]) for row in workbench.rows(name)}
        for name in ("public_t", "second")
    ]
    assert len(positions[0] & positions[1]) == 3
    assert [command for command, _ in history(workbench, "second")] == []


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("ALTER TABLE t DROP CONSTRAINT t_pkey", 22983),
        ("ALTER TABLE t DROP id", 22983),
        ("ALTER TABLE t REPLICA IDENTITY DEFAULT", 50024),
        ("ALTER PUBLICATION highwater DROP TABLE t", 50024),
        ("DROP PUBLICATION highwater", 50024),
    ],
)
def test_what_would_break_capture_is_refused(workbench, t, statement, number):
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as caught:
        workbench.sql(statement)
    assert f"Msg {number}" in (caught.value.diag.message_detail or "")
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1)]


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE k ALTER code DROP NOT NULL",
        "ALTER TABLE k DROP CONSTRAINT k_code_not_null, ADD CONSTRAINT k_new NOT NULL code NOT VALID",
        "DROP INDEX k_code",
        "DROP INDEX CONCURRENTLY k_code",
        'drop index concurrently if exists public."k_code"',
        "ALTER TABLE k DROP CONSTRAINT k_pkey, ADD PRIMARY KEY (id) DEFERRABLE",
    ],
)
def test_what_identifies_rows_may_not_be_loosened(workbench, statement):
    workbench.sql("CREATE TABLE k (id int PRIMARY KEY, code text NOT NULL, v text NOT NULL)")
    workbench.sql("CREATE UNIQUE INDEX k_code ON k (code)")
    workbench.sql("CREATE UNIQUE INDEX k_other ON k (v)")
    workbench.enable("k", index_name="k_code")
    workbench.enable("k", capture_instance="by_id")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="used by Change Data") as caught:
        workbench.sql(statement)
    assert caught.value.diag.message_detail == "Msg 22983, Level 16, State 1"
    with pytest.raises(psycopg.errors.UniqueViolation):
        workbench.sql("INSERT INTO k VALUES (1, 'a', 'a'), (2, 'a', 'b')")
    workbench.sql("ALTER TABLE k ALTER v DROP NOT NULL")
    workbench.sql("DROP INDEX CONCURRENTLY k_other")
    workbench.sql("CREATE UNIQUE INDEX k_again ON k (code)")
    workbench.sql("DROP INDEX CONCURRENTLY k_code")


def test_a_column_that_is_not_null_for_new_rows_alone_identifies_none(workbench):
    workbench.sql("CREATE TABLE k (code text UNIQUE)")
    workbench.sql("INSERT INTO k VALUES (NULL)")
    workbench.sql("ALTER TABLE k ADD CONSTRAINT k_new NOT NULL code NOT VALID")
    with pytest.raises(IndexNullable):
        workbench.enable("k", index_name="k_code_key")


def test_a_key_may_change_its_name_and_its_type(workbench, t):
    workbench.sql("ALTER TABLE t RENAME CONSTRAINT t_pkey TO the_key")
    workbench.sql("ALTER TABLE t ALTER id TYPE bigint")
    workbench.sql("INSERT INTO t VALUES (3000000000, 'a', 1)")
    workbench.sql("UPDATE t SET id = 1")
    workbench.drain()
    assert images(workbench) == [(2, 3000000000, "a", 1), (1, 3000000000, "a", 1), (2, 1, "a", 1)]


def test_updates_without_their_old_row_stop_the_scan_until_the_instance_is_disabled(workbench, untold):
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.sql("ALTER TABLE t REPLICA IDENTITY DEFAULT")
    workbench.sql("UPDATE t SET v = 'b'")
    for _ in range(2):
        with pytest.raises(OldRowsMissing, match="REPLICA IDENTITY FULL"):
            workbench.drain()
    workbench.sql("ALTER TABLE t REPLICA IDENTITY FULL")
    workbench.engine.disable_table(DATABASE, "public", "t", "public_t")
    workbench.enable("t")
    workbench.sql("DELETE FROM t")
    workbench.drain()
    assert images(workbench) == [(1, 1, "b", 1)]


def test_deletes_of_the_key_alone_stop_the_scan(workbench, untold):
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.sql("ALTER TABLE t REPLICA IDENTITY DEFAULT")
    workbench.sql("DELETE FROM t")
    with pytest.raises(OldRowsMissing):
        workbench.drain()


def test_partitions_that_come_later_are_captured_and_those_that_leave_are_free(workbench):
    workbench.sql("CREATE TABLE p (at date, v text) PARTITION BY RANGE (at)")
    workbench.sql("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')")
    workbench.enable("p")
    workbench.sql("CREATE TABLE p2 PARTITION OF p FOR VALUES FROM ('2027-01-01') TO ('2028-01-01')")
    workbench.sql("CREATE TABLE p3 (at date, v text)")
    workbench.sql("INSERT INTO p3 VALUES ('2028-05-05', 'came along')")
    workbench.sql("ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM ('2028-01-01') TO ('2029-01-01')")
    workbench.sql("INSERT INTO p VALUES ('2026-05-05', 'a'), ('2027-05-05', 'b')")
    workbench.sql("UPDATE p SET v = 'c'")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        workbench.sql("TRUNCATE p2")
    workbench.sql("ALTER TABLE p DETACH PARTITION p2")
    workbench.sql("TRUNCATE p2")
    workbench.sql("INSERT INTO p2 VALUES ('2027-05-05', 'not captured')")
    workbench.drain()
    assert [row[0] for row in images(workbench, "public_p")] == [2, 2, 3, 4, 3, 4, 3, 4]
    identities = workbench.sql(
        "SELECT relname, relreplident FROM pg_class WHERE relname ~ '^p[123]?$' ORDER BY 1"
    )
    assert identities == [("p", "f"), ("p1", "f"), ("p2", "d"), ("p3", "f")]
    workbench.engine.disable_table(DATABASE, "public", "p", "all")
    assert {
        row[1]
        for row in workbench.sql("SELECT relname, relreplident FROM pg_class WHERE relname ~ '^p[123]?$'")
    } == {"d"}


def test_whoever_owns_a_table_may_alter_it_while_it_is_tracked(workbench):
    workbench.sql("CREATE ROLE plain_owner")
    try:
        workbench.sql("CREATE SCHEMA own AUTHORIZATION plain_owner")
        workbench.sql("SET ROLE plain_owner")
        workbench.sql("CREATE TABLE own.t (id int PRIMARY KEY, at date, v text) ")
        workbench.sql("RESET ROLE")
        workbench.engine.enable_table(DATABASE, "own", "t", role_name=None)
        workbench.sql("SET ROLE plain_owner")
        workbench.sql("ALTER TABLE own.t ADD extra text")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            workbench.sql("SELECT cdc.write_word('{}')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            workbench.sql("DELETE FROM cdc.tracked_tables")
        workbench.sql("INSERT INTO own.t VALUES (1, '2026-01-01', 'a', 'x')")
        workbench.sql("DROP TABLE own.t")
        workbench.sql("RESET ROLE")
        workbench.drain()
        assert workbench.engine.help_change_data_capture(DATABASE) == []
    finally:
        workbench.sql("RESET ROLE")
        workbench.sql("DROP OWNED BY plain_owner CASCADE; DROP ROLE plain_owner")


@pytest.mark.parametrize(
    ("statement", "verdict", "fix"),
    [
        (
            "ALTER TABLE t REPLICA IDENTITY DEFAULT",
            "attention",
            "ALTER TABLE public.t REPLICA IDENTITY FULL;",
        ),
        (
            "ALTER PUBLICATION highwater DROP TABLE t",
            "failing",
            "highwater disable -d db public.t --capture-instance public_t; highwater enable -d db public.t",
        ),
        ("DROP TABLE t", "attention", "highwater disable -d db public.t --capture-instance public_t"),
    ],
)
def test_what_nobody_refuses_is_a_finding(workbench, untold, statement, verdict, fix):
    workbench.sql(statement)
    findings = {finding.fix: str(finding.verdict) for finding in workbench.engine.status().findings}
    assert findings[fix] == verdict


def test_a_crash_after_the_conversion_changes_nothing(workbench, t):
    workbench.sql("INSERT INTO t VALUES (1, 'a', 1)")
    workbench.sql("ALTER TABLE t ALTER n TYPE bigint")
    workbench.sql("INSERT INTO t VALUES (2, 'b', 3000000000)")

    class CrashedError(Exception):
        pass

    class Crash(CrashPoints):
        def reach(self, point: CrashPoint) -> None:
            if point is CrashPoint.BEFORE_PUBLISHING:
                raise CrashedError

    for _ in range(2):
        with pytest.raises(CrashedError):
            workbench.drain(workbench.scan(crash=Crash()))
    assert described(workbench).columns[2].column_type == "integer"
    workbench.drain()
    assert images(workbench) == [(2, 1, "a", 1), (2, 2, "b", 3000000000)]
    assert history(workbench) == [("ALTER TABLE t ALTER n TYPE bigint", True)]


def write_for_ever(dsn: str, worker: int, stop: Event, failures: list[BaseException]) -> None:
    """Inserts, updates and deletes of rows of its own, in transactions of one to three statements."""
    try:
        with psycopg.connect(dsn, autocommit=True) as connection:
            for number in itertools.count():
                if stop.is_set():
                    return
                key = number * 10 + worker
                with connection.transaction():
                    connection.execute("INSERT INTO t VALUES (%s, 'new', 0)", [key])
                    connection.execute("UPDATE t SET v = v || %s WHERE id = %s", [str(number), key - 10])
                if number % 3 == 0:
                    connection.execute("DELETE FROM t WHERE id = %s", [key - 20])
    except BaseException as error:
        failures.append(error)
        raise


def test_two_instances_through_a_schema_switch_under_load(workbench, t):
    stop, failures = Event(), []
    writers = [Thread(target=write_for_ever, args=(workbench.dsn, n, stop, failures)) for n in range(3)]
    for writer in writers:
        writer.start()
    scan = workbench.scan()
    some = CaptureParameters(maxtrans=50, maxscans=1)
    try:
        scan.run(some, lambda: False)
        workbench.sql("ALTER TABLE t ADD extra text DEFAULT 'none'")
        scan.run(some, lambda: False)
        workbench.enable("t", capture_instance="second")
        scan.run(some, lambda: False)
        workbench.sql("UPDATE t SET extra = 'only here' WHERE id % 2 = 0")
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    scan.run(CaptureParameters(maxtrans=100_000), lambda: False)
    assert failures == []
    first, second = workbench.rows("public_t"), workbench.rows("second")
    begun = str(described(workbench, "second").start_lsn)
    shared = {positions_of(row) for row in first if row["__$start_lsn"] > begun}
    alone = [row for row in second if positions_of(row) not in shared]
    assert shared <= {positions_of(row) for row in second}
    assert {row["__$update_mask"] for row in alone} == {b"\x08"}
    assert len({positions_of(row) for row in first}) == len(first)
    assert rebuilt(first) == set(workbench.sql("SELECT id, v, n FROM t"))


def positions_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("__$start_lsn", "__$seqval", "__$operation"))


def rebuilt(rows: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    """The table's rows, from all changes since it was empty."""
    order = ("__$start_lsn", "__$command_id", "__$seqval", "__$operation")
    table: dict[int, tuple[Any, ...]] = {}
    for row in sorted(rows, key=lambda row: tuple(row[name] for name in order)):
        values = (row["id"], row["v"], row["n"])
        if row["__$operation"] in (1, 3):
            assert table.pop(row["id"]) == values
        else:
            table[row["id"]] = values
    return set(table.values())


def test_ddl_elsewhere_goes_on_whatever_became_of_a_tracked_table(workbench, t):
    workbench.sql("ALTER EVENT TRIGGER highwater_ddl DISABLE")
    workbench.sql("ALTER TABLE t REPLICA IDENTITY DEFAULT")
    workbench.sql("ALTER EVENT TRIGGER highwater_ddl ENABLE")
    workbench.sql("CREATE TABLE other (id int PRIMARY KEY)")
    workbench.sql("ALTER TABLE other ADD v text")
    workbench.sql("DROP TABLE other")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        workbench.sql("ALTER TABLE t ADD extra text")
    workbench.sql("ALTER TABLE t REPLICA IDENTITY FULL")


def test_whoever_detaches_a_partition_need_not_own_it(workbench):
    workbench.sql("CREATE ROLE parts_owner")
    try:
        workbench.sql("CREATE TABLE p (at int) PARTITION BY LIST (at)")
        workbench.sql("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)")
        workbench.sql("ALTER TABLE p OWNER TO parts_owner")
        workbench.enable("p")
        workbench.sql("SET ROLE parts_owner")
        workbench.sql("ALTER TABLE p DETACH PARTITION p1")
        workbench.sql("RESET ROLE")
        assert workbench.sql("SELECT count(*) FROM cdc.tracked_tables") == [(1,)]
        workbench.sql("INSERT INTO p1 VALUES (1)")
        workbench.sql("DELETE FROM p1")
    finally:
        workbench.sql("RESET ROLE")
        workbench.sql("DROP OWNED BY parts_owner CASCADE; DROP ROLE parts_owner")


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE p ATTACH PARTITION leaf FOR VALUES IN (2)",
        "CREATE UNLOGGED TABLE p3 PARTITION OF p FOR VALUES IN (3)",
        "ALTER TABLE p1 SET UNLOGGED",
        "DROP TRIGGER highwater_refuse_truncate ON p1",
        "ALTER PUBLICATION highwater SET (publish = 'insert')",
        "ALTER PUBLICATION highwater SET TABLE p WHERE (id > 100), leaf",
        "ALTER PUBLICATION highwater SET TABLE p (id), leaf",
    ],
)
def test_what_would_lose_rows_of_partitions_is_refused(workbench, statement):
    workbench.sql("CREATE TABLE p (id int, v text) PARTITION BY LIST (id)")
    workbench.sql("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)")
    workbench.sql("CREATE TABLE leaf (id int, v text)")
    workbench.enable("p")
    workbench.enable("leaf")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="TRUNCATE guard"):
        workbench.sql(statement)


def test_a_root_whose_partition_is_tracked_by_itself_is_not_enabled(workbench):
    workbench.sql("CREATE TABLE p (id int) PARTITION BY LIST (id)")
    workbench.sql("CREATE TABLE leaf (id int)")
    workbench.enable("leaf")
    workbench.sql("ALTER TABLE p ATTACH PARTITION leaf FOR VALUES IN (1)")
    with pytest.raises(TableNotMarked, match=r"tracked by themselves: (public\.)?leaf"):
        workbench.enable("p")
    assert len(workbench.engine.help_change_data_capture(DATABASE)) == 1


@pytest.fixture
def parts(workbench: Workbench) -> None:
    """p with partition p1, sub-partitioned p2 (p2a) and a table beside them for each level."""
    workbench.sql("CREATE TABLE p (id int, v text) PARTITION BY LIST (id)")
    workbench.sql("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)")
    workbench.sql("CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) PARTITION BY LIST (v)")
    workbench.sql("CREATE TABLE p2a PARTITION OF p2 FOR VALUES IN ('a')")
    workbench.sql("CREATE TABLE beside (id int, v text)")


SWITCHES = [
    ("ALTER TABLE p ATTACH PARTITION beside FOR VALUES IN (3)", 22842),
    ("ALTER TABLE p2 ATTACH PARTITION beside FOR VALUES IN ('b')", 22842),
    ("ALTER TABLE p DETACH PARTITION p1", 22843),
    ("ALTER TABLE p DETACH PARTITION p2", 22843),
    ("ALTER TABLE p2 DETACH PARTITION p2a", 22843),
    ("ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY", 22843),
    ("ALTER TABLE ONLY public . p2 DETACH PARTITION public.p2a\n-- now\nCONCURRENTLY;", 22843),
    ('ALTER TABLE IF EXISTS "p2"DETACH PARTITION "p2a"concurrently', 22843),
    ("DROP TABLE p2", 22843),
    ("DO $$ BEGIN EXECUTE 'DROP TABLE p2a'; END $$", 22843),
    ("DO $$ BEGIN ALTER TABLE p DETACH PARTITION p1; END $$", 22843),
]


def members(workbench: Workbench) -> list[tuple[Any, ...]]:
    return workbench.sql("SELECT inhparent::regclass, inhrelid::regclass, inhdetachpending FROM pg_inherits")


def test_partitions_stay_where_an_instance_says_so(workbench, parts):
    workbench.enable("p")
    workbench.enable("p", capture_instance="fixed", allow_partition_switch=False)
    before = members(workbench)
    for statement, number in SWITCHES:
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match=r"'public\.p'") as caught:
            workbench.sql(statement)
        assert f"Msg {number}" in (caught.value.diag.message_detail or ""), statement
        assert members(workbench) == before
    workbench.sql("CREATE TABLE p3 PARTITION OF p FOR VALUES IN (3)")
    workbench.sql("ALTER TABLE p ADD extra text")
    workbench.sql("CREATE TABLE top (id int, v text, extra text) PARTITION BY LIST (id)")
    workbench.sql("ALTER TABLE top ATTACH PARTITION p DEFAULT")
    workbench.sql("ALTER TABLE top DETACH PARTITION p")
    workbench.sql("INSERT INTO p VALUES (1, 'x'), (2, 'a'), (3, 'y')")
    workbench.drain()
    assert images(workbench, "fixed") == [(2, 1, "x"), (2, 2, "a"), (2, 3, "y")]
    assert not described(workbench, "fixed").partition_switch
    workbench.engine.disable_table(DATABASE, "public", "p", "fixed")
    workbench.sql("ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY")
    workbench.sql("DROP TABLE p2")


def test_a_table_goes_with_partitions_that_must_stay(workbench, parts):
    workbench.enable("p", allow_partition_switch=False)
    workbench.sql("DROP TABLE p")
    assert workbench.sql("SELECT * FROM cdc.fixed_partitions") == []


def test_rows_that_come_or_go_with_a_partition_are_not_captured(workbench, parts):
    workbench.sql("INSERT INTO beside VALUES (3, 'came')")
    workbench.sql("INSERT INTO p VALUES (1, 'goes'), (2, 'a')")
    workbench.enable("p")
    workbench.sql("ALTER TABLE p ATTACH PARTITION beside FOR VALUES IN (3)")
    workbench.sql("ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY")
    workbench.sql("ALTER TABLE p DETACH PARTITION p2")
    workbench.sql("DELETE FROM p1")
    workbench.sql("DELETE FROM p2a")
    workbench.sql("INSERT INTO p VALUES (3, 'new')")
    workbench.drain()
    assert images(workbench, "public_p") == [(2, 3, "new")]


def test_all_triggers_may_be_disabled_but_the_guard_stays(workbench, t):
    workbench.sql("ALTER TABLE t DISABLE TRIGGER ALL")
    workbench.sql("ALTER TABLE t ENABLE TRIGGER ALL")
    workbench.sql("SET session_replication_role = replica")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        workbench.sql("TRUNCATE t")


def test_partitions_of_a_tracked_table_that_is_a_partition_itself(workbench):
    workbench.sql("CREATE TABLE mid (id int, v text) PARTITION BY RANGE (id)")
    workbench.enable("mid")
    workbench.sql("CREATE TABLE top (id int, v text) PARTITION BY RANGE (id)")
    workbench.sql("ALTER TABLE top ATTACH PARTITION mid FOR VALUES FROM (0) TO (1000)")
    workbench.sql("CREATE TABLE mid2 PARTITION OF mid FOR VALUES FROM (100) TO (200)")
    workbench.sql("INSERT INTO mid VALUES (101, 'x')")
    workbench.sql("UPDATE top SET v = 'z'")
    workbench.drain()
    assert images(workbench, "public_mid") == [(2, 101, "x"), (3, 101, "x"), (4, 101, "z")]


def test_ddl_of_a_parent_is_that_of_its_heirs(workbench):
    workbench.sql("CREATE TABLE par (id int, a int)")
    workbench.sql("CREATE TABLE kid () INHERITS (par)")
    workbench.enable("kid")
    workbench.sql("INSERT INTO kid VALUES (1, 10)")
    workbench.sql("ALTER TABLE par DROP a")
    workbench.sql("ALTER TABLE par ADD a int DEFAULT 77")
    workbench.sql("INSERT INTO kid VALUES (2, 20)")
    workbench.sql("ALTER TABLE par RENAME id TO x")
    workbench.sql("INSERT INTO kid VALUES (3, 30)")
    workbench.sql("ALTER TABLE par RENAME x TO y")
    workbench.sql("INSERT INTO kid VALUES (4, 40)")
    workbench.drain()
    assert images(workbench, "public_kid") == [(2, 1, 10), (2, 2, None), (2, 3, None), (2, 4, None)]
    assert len(history(workbench, "public_kid")) == 4


def test_nobody_passes_his_ddl_for_ours(workbench, t):
    workbench.sql("SET highwater.own = 'on'")
    workbench.sql("ALTER TABLE t RENAME v TO words")
    workbench.drain()
    assert history(workbench) == [("ALTER TABLE t RENAME v TO words", False)]


def test_ddl_goes_on_where_functions_are_nobodys_by_default(new_workbench):
    workbench = new_workbench(before="ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
    workbench.sql("CREATE ROLE plain_user")
    try:
        workbench.sql("SET ROLE plain_user")
        workbench.sql("CREATE TEMP TABLE mine (id int)")
        workbench.sql("ALTER TABLE mine ADD v text")
    finally:
        workbench.sql("RESET ROLE")
        workbench.sql("DROP OWNED BY plain_user CASCADE; DROP ROLE plain_user")
