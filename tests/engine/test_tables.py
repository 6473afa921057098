"""Enabling and disabling tables over real databases; the rules themselves are in test_table_rules."""

from __future__ import annotations

import psycopg
import pytest
from structlog.testing import capture_logs

from engine.errors import (
    DatabaseNotEnabled,
    InstanceNotOfTable,
    InvalidObjectName,
    ParameterEmpty,
    SchemaWithoutName,
    SwitchNotBlocked,
    TableMissing,
    TableNotMarked,
    TableNotTracked,
    ThresholdOutOfRange,
    TooManyInstances,
)
from engine.model.job import CaptureParameters
from engine.model.lsn import Lsn
from tests.sources.earlier import make_earlier


def test_a_table_needs_an_enabled_database(engine, hr):
    with pytest.raises(DatabaseNotEnabled):
        engine.enable_table(hr, "hr", "department", role_name=None)


def test_an_enabled_table_has_its_metadata(engine, enabled):
    made = engine.enable_table(enabled, "hr", "department", role_name=None)
    assert engine.help_change_data_capture(enabled) == [made]
    assert made.capture_instance == "hr_department"
    assert made.column_names == ("id", "name", "budget", "a,b")
    assert made.index_column_names == ("id",)
    assert made.supports_net_changes
    assert made.start_lsn is None
    assert engine.get_min_lsn(enabled, "hr_department") == Lsn.ZERO


def test_the_first_table_adds_the_capture_job_and_starts_it(engine, enabled, control):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    job, _ = control.jobs.list(enabled)
    assert job.name == "cdc.hr_capture"
    assert job.wanted
    assert job.configured == CaptureParameters(500, 10, True, 5)


def test_a_stopped_job_stays_stopped_when_more_tables_come(engine, enabled, control):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    engine.stop_job(enabled)
    engine.enable_table(enabled, "hr", "note", role_name=None)
    assert not control.jobs.get(enabled).wanted


def test_a_table_that_is_missing_leaves_nothing(engine, enabled):
    with pytest.raises(TableMissing):
        engine.enable_table(enabled, "hr", "nothing", role_name=None)
    assert engine.help_change_data_capture(enabled) == []


def test_a_table_that_the_source_refuses_leaves_nothing(engine, enabled, control, source_dsn, sql):
    import psycopg

    with psycopg.connect(source_dsn) as other:
        other.execute("LOCK TABLE hr.department IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(TableNotMarked):
            engine.enable_table(enabled, "hr", "department", role_name=None)
    assert engine.help_change_data_capture(enabled) == []
    assert control.jobs.list(enabled) == []


def test_a_third_instance_is_refused(engine, enabled):
    for name in ("first", "second"):
        engine.enable_table(enabled, "hr", "department", role_name=None, capture_instance=name)
    with pytest.raises(TooManyInstances):
        engine.enable_table(enabled, "hr", "department", role_name=None, capture_instance="third")


def test_a_gating_role_is_made_where_it_is_missing(engine, enabled, sql):
    role = f"{enabled}_readers"
    try:
        made = engine.enable_table(enabled, "hr", "department", role_name=f"{role}  ")
        assert made.role_name == role
        assert sql(f"SELECT rolcanlogin FROM pg_roles WHERE rolname = '{role}'") == [(False,)]
    finally:
        sql(f"DROP ROLE IF EXISTS {role}")


def test_a_disabled_table_is_gone_at_once(engine, enabled, control):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    engine.disable_table(enabled, "hr", "department", "hr_department")
    assert engine.help_change_data_capture(enabled) == []
    assert control.jobs.list(enabled) == []
    assert [table.capture_instance for table in control.instances.dropped(enabled)] == ["hr_department"]
    with pytest.raises(InvalidObjectName):
        engine.get_all_changes(enabled, "hr_department", Lsn.ZERO, Lsn.ZERO)


def test_one_of_two_instances_goes_and_the_table_stays_tracked(engine, enabled, control, sql):
    for name in ("old", "new"):
        engine.enable_table(enabled, "hr", "department", role_name=None, capture_instance=name)
    engine.disable_table(enabled, "hr", "department", "old")
    assert [one.capture_instance for one in engine.help_change_data_capture(enabled)] == ["new"]
    assert sql("SELECT tablename FROM pg_publication_tables") == [("department",)]
    assert len(control.jobs.list(enabled)) == 2


def test_all_instances_of_a_table_go_together(engine, enabled, sql):
    for name in ("old", "new"):
        engine.enable_table(enabled, "hr", "department", role_name=None, capture_instance=name)
    engine.enable_table(enabled, "hr", "note", role_name=None)
    engine.disable_table(enabled, "hr", "department", "all")
    assert [one.capture_instance for one in engine.help_change_data_capture(enabled)] == ["hr_note"]
    assert sql("SELECT tablename FROM pg_publication_tables") == [("note",)]


def test_a_table_dropped_at_the_source_can_still_be_disabled(engine, enabled, sql):
    engine.enable_table(enabled, "hr", "note", role_name=None)
    sql("DROP TABLE hr.note")
    engine.disable_table(enabled, "hr", "note", "all")
    assert engine.help_change_data_capture(enabled) == []


def test_disabling_says_what_is_wrong(engine, enabled):
    with pytest.raises(TableNotTracked):
        engine.disable_table(enabled, "hr", "department", "all")
    with pytest.raises(TableMissing):
        engine.disable_table(enabled, "hr", "nothing", "all")
    engine.enable_table(enabled, "hr", "department", role_name=None)
    with pytest.raises(InstanceNotOfTable):
        engine.disable_table(enabled, "hr", "department", "hr_note")
    with pytest.raises(ParameterEmpty):
        engine.disable_table(enabled, "hr", "department", None)


def test_help_of_one_table(engine, enabled):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    made = engine.enable_table(enabled, "hr", "note", role_name=None)
    assert engine.help_change_data_capture(enabled, "hr", "note") == [made]
    with pytest.raises(SchemaWithoutName):
        engine.help_change_data_capture(enabled, "hr")


def test_partition_switch_is_kept_as_asked_and_its_message_reaches_the_caller(engine, enabled, sql):
    sql("CREATE TABLE hr.sale (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    said = []
    for table, name, allowed in (("sale", "open", 1), ("sale", "fixed", 0), ("note", "note", 0)):
        made = engine.enable_table(
            enabled,
            "hr",
            table,
            role_name=None,
            capture_instance=name,
            allow_partition_switch=allowed,
            on_message=said.append,
        )
        assert made in engine.help_change_data_capture(enabled)
    assert [(each.number, each.severity) for each in said] == [(22855, 10), (22856, 10), (22857, 10)]
    kept = {one.capture_instance: one.partition_switch for one in engine.help_change_data_capture(enabled)}
    assert kept == {"open": True, "fixed": False, "note": True}


def test_without_event_triggers_the_message_says_that_nothing_is_refused(engine, enabled, sql):
    sql("CREATE TABLE hr.sale (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    sql("DROP EVENT TRIGGER highwater_before")
    said = []
    engine.enable_table(
        enabled, "hr", "sale", role_name=None, allow_partition_switch=False, on_message=said.append
    )
    assert [type(each) for each in said] == [SwitchNotBlocked]
    [finding] = [
        one for one in engine.connect(enabled, engine.dsn(enabled)) if one.subject == "event triggers"
    ]
    assert "ATTACH and DETACH PARTITION" in finding.problem
    sql(finding.fix.removeprefix("As a superuser: "))
    assert not [
        one for one in engine.connect(enabled, engine.dsn(enabled)) if one.subject == "event triggers"
    ]


def test_what_an_earlier_version_enabled_is_upgraded_by_whoever_comes_first(engine, enabled, source_dsn, sql):
    sql("CREATE TABLE hr.sale (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    with psycopg.connect(source_dsn, autocommit=True) as connection:
        make_earlier(connection, "2_ddl")
        assert [one.fix for one in engine.status().findings if "earlier version" in one.text] == [
            "highwater capture stop -d hr; highwater capture start -d hr"
        ]
        assert engine.connect(enabled, source_dsn) == []
        assert not [one for one in engine.status().findings if "earlier version" in one.text]
        make_earlier(connection, "2_ddl")
    engine.enable_table(enabled, "hr", "sale", role_name=None, allow_partition_switch=False)
    assert engine.connect(enabled, source_dsn) == []
    sql("CREATE TABLE hr.part (id int PRIMARY KEY)")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        sql("ALTER TABLE hr.sale ATTACH PARTITION hr.part DEFAULT")


def test_ddl_is_refused_and_told_in_replica_sessions_too(engine, enabled, sql):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="department_pkey"):
        sql(
            "SET session_replication_role = replica;"
            " ALTER TABLE hr.department DROP CONSTRAINT department_pkey"
        )
    sql("ALTER EVENT TRIGGER highwater_drop ENABLE")
    [found] = [one for one in engine.status().findings if "in every session" in one.text]
    assert found.fix == "As a superuser: ALTER EVENT TRIGGER highwater_drop ENABLE ALWAYS;"


def test_dropping_a_column_of_the_key_is_refused_without_the_name_of_a_dropped_column(engine, enabled, sql):
    sql("CREATE TABLE hr.k (a int NOT NULL, b int NOT NULL, UNIQUE (a, b))")
    engine.enable_table(enabled, "hr", "k", role_name=None, index_name="k_a_b_key")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="k_a_b_key") as caught:
        sql("ALTER TABLE hr.k DROP COLUMN b")
    assert caught.value.diag.message_detail == "Msg 22983, Level 16, State 1"
    assert caught.value.diag.message_hint == "Rows are identified by the index."


def test_no_threshold_is_refused_before_the_low_endpoint_moves(engine, enabled):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    with pytest.raises(ThresholdOutOfRange):
        engine.cleanup_change_table(enabled, "hr_department", None, None)


def test_where_nobody_listens_messages_are_logged(engine, enabled):
    with capture_logs() as logs:
        engine.enable_table(enabled, "hr", "note", role_name=None, allow_partition_switch=False)
    [note] = [said["event"] for said in logs if said["log_level"] == "warning"]
    assert note.startswith("@allow_partition_switch = 0 is ignored")
