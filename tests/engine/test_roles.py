"""What a role may not do the engine refuses, whichever way it is asked, and who asked is written down."""

from __future__ import annotations

import itertools
from threading import Event

import psycopg
import pytest

from engine.commands.access import ACCESS, Command, Free, Read
from engine.errors import (
    CdcError,
    ExecuteDenied,
    ExportsOff,
    ImpersonationDenied,
    LoginFailed,
    ObjectDenied,
    RoleInvalid,
    SourceDenied,
    TableMissing,
    UserUnknown,
)
from engine.model.activity import Outcome
from engine.model.dashboard import DashboardSettings
from engine.model.user import Role, User
from engine.sources.sql_session import StatementRefused
from engine.tsql.batches import batches
from engine.tsql.interpreter import session as interpreting
from tests.commands.calls import COMMANDS, given
from tests.engine.test_caller_rule import new_role  # noqa: F401 - a fixture

_numbers = itertools.count(1)
GUARDED = sorted(name for name, access in ACCESS.items() if not isinstance(access, Free))


class Shown:
    """A sink that keeps what a script gives."""

    def __init__(self):
        self.results, self.errors, self.messages = [], [], []

    def rows(self, columns, rows):
        self.results.append([tuple(row) for row in rows])
        return len(self.results[-1])

    def count(self, rows):
        pass

    def message(self, message):
        self.messages.append(message)

    def error(self, error):
        self.errors.append(error)


def run(engine, database, script):
    shown = Shown()
    with interpreting(engine, database, shown) as interpreter:
        for batch in batches(script):
            interpreter.run(batch)
    return shown


@pytest.fixture
def as_(engine):
    """The engine as somebody of this role uses it."""
    return lambda role, principal=None: engine.acting_as(User("sam", role, principal))


# Refusals


@pytest.mark.parametrize("name", GUARDED)
def test_whoever_has_no_role_is_refused_everything(engine, name):
    nobody = engine.acting_as("eve@example.com")
    with pytest.raises(LoginFailed, match="eve@example"), getattr(nobody, name)(**given(name)):
        pass


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_a_role_is_refused_what_is_above_it(engine, as_, role):
    for name in GUARDED:
        access = ACCESS[name]
        assert isinstance(access, Read | Command)
        if role.covers(access.least):
            continue
        with pytest.raises(ExecuteDenied, match=f"role {access.least} is needed") as refused:
            getattr(as_(role), name)(**given(name))
        assert refused.value.line().startswith(
            "Msg 229, Level 14, State 5: The EXECUTE permission was denied"
        )
        if isinstance(access, Command):
            [written] = engine.activity(1)
            assert (written.command, written.outcome, written.error_number) == (name, Outcome.REFUSED, 229)
            assert (written.user_name, written.role) == ("sam", str(role))


def test_an_operator_tunes_capture_and_not_retention(engine, enabled, as_):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    as_(Role.OPERATOR).change_job(enabled, maxtrans=7)
    with pytest.raises(ExecuteDenied):
        as_(Role.OPERATOR).change_job(enabled, "cleanup", retention=1)
    assert engine.least_role("change_job", job_type="cleanup") is Role.ADMIN
    assert engine.least_role("change_job") is Role.OPERATOR
    with pytest.raises(ExecuteDenied):
        as_(Role.VIEWER).change_job(enabled, maxtrans=8)
    assert engine.help_jobs(enabled)[0].configured.maxtrans == 7


def test_a_role_that_is_taken_is_refused_at_the_next_call(engine):
    sam = engine.acting_as("sam@example.com")
    with pytest.raises(LoginFailed, match="highwater roles set sam@example"):
        sam.databases()
    engine.set_role(" sam@example.com ", "viewer")
    assert sam.databases() == []
    with pytest.raises(ExecuteDenied):
        sam.set_role("sam@example.com", "admin")
    engine.set_role("sam@example.com", "admin", "boss")
    sam.set_role("ann@example.com", "operator")
    assert [(each.name, each.role, each.principal) for each in sam.users()] == [
        ("ann@example.com", "operator", None),
        ("sam@example.com", "admin", "boss"),
    ]
    assert sam.users()[0].changed_by == "sam@example.com"
    engine.drop_role("sam@example.com")
    with pytest.raises(LoginFailed):
        sam.databases()
    with pytest.raises(UserUnknown):
        engine.drop_role("sam@example.com")


@pytest.mark.parametrize(
    ("name", "role"), [("", "viewer"), ("a\nb", "viewer"), ("x" * 321, "viewer"), ("a", "king")]
)
def test_a_role_that_can_not_be_is_refused(engine, name, role):
    with pytest.raises(RoleInvalid):
        engine.set_role(name, role)
    assert list(engine.users()) == []


# The record


def test_what_was_done_is_written_down_and_does_the_same_again(engine, enabled, as_):
    as_(Role.ADMIN).enable_table(enabled, "hr", "department", role_name=None, supports_net_changes=True)
    [written] = engine.activity(1)
    assert (written.user_name, written.role, written.database) == ("sam", "admin", "hr")
    assert (written.command, written.outcome, written.error_number) == ("enable_table", Outcome.OK, None)
    assert written.started <= written.ended
    [before] = engine.help_change_data_capture(enabled)
    engine.disable_table(enabled, "hr", "department", "all")
    assert run(engine, enabled, written.statement).errors == []
    [after] = engine.help_change_data_capture(enabled)
    assert (after.capture_instance, after.column_names, after.supports_net_changes) == (
        before.capture_instance,
        before.column_names,
        True,
    )


def test_an_error_is_written_down(engine, enabled):
    with pytest.raises(TableMissing):
        engine.enable_table(enabled, "hr", "nothing", role_name=None)
    [written] = engine.activity(1)
    assert (written.outcome, written.error_number) == (Outcome.FAILED, 22931)
    assert "hr.nothing" in (written.error_text or "")


def test_a_password_is_not_written_down(engine, source_dsn):
    with pytest.raises(CdcError):
        engine.connect("other", "postgresql://sam:hush@127.0.0.1:1/shop")
    [written] = engine.activity(1)
    assert "hush" not in written.statement + (written.error_text or "")
    assert "N'postgresql://sam:***@127.0.0.1:1/shop'" in written.statement


def test_what_was_done_can_be_asked_for_by_database_and_user(engine, enabled, as_):
    as_(Role.ADMIN).set_role("ann", "viewer")
    assert [each.command for each in engine.activity(user_name="sam")] == ["set_role"]
    assert [each.command for each in engine.activity(database=enabled)] == ["enable_db"]
    assert [each.command for each in engine.activity(limit=1)] == ["set_role"]
    assert [each.command for each in engine.activity()] == ["set_role", "enable_db", "connect"]


def test_a_download_is_written_down_and_can_be_switched_off(engine, enabled, as_):
    as_(Role.VIEWER).begin_export(enabled, "SELECT 1;")
    assert engine.activity(1)[0].statement == "SELECT 1;"
    engine.set_dashboard_settings(DashboardSettings(exports=False, zone="Local"))
    assert as_(Role.VIEWER).dashboard_settings() == DashboardSettings(exports=False, zone="Local")
    with pytest.raises(ExportsOff):
        as_(Role.ADMIN).begin_export(enabled, "SELECT 1;")
    with pytest.raises(RoleInvalid):
        engine.set_dashboard_settings(DashboardSettings(zone="Mars"))


# Change data and statements


@pytest.fixture
def gated(engine, enabled, sql, new_role):  # noqa: F811
    """Two instances, one kept by a gating role; a reader of both tables who is in that role."""
    gate, reader = new_role(), new_role()
    sql(f'GRANT USAGE ON SCHEMA hr TO "{reader}"; GRANT SELECT ON ALL TABLES IN SCHEMA hr TO "{reader}"')
    engine.enable_table(enabled, "hr", "department", role_name=gate)
    engine.enable_table(enabled, "hr", "note", role_name=None)
    return enabled, gate, reader


def names(engine, database):
    return sorted(each.capture_instance for each in engine.help_change_data_capture(database))


def test_gating_roles_hold_for_users(engine, gated, sql, as_):
    database, gate, reader = gated
    assert names(as_(Role.ADMIN), database) == ["hr_department", "hr_note"]
    for role in (Role.VIEWER, Role.OPERATOR):
        assert names(as_(role), database) == ["hr_note"]
        with pytest.raises(ObjectDenied):
            as_(role).get_captured_columns(database, "hr_department")
    assert names(as_(Role.VIEWER, reader), database) == ["hr_note"]
    sql(f'GRANT "{gate}" TO "{reader}"')
    assert names(as_(Role.VIEWER, reader), database) == ["hr_department", "hr_note"]
    assert names(as_(Role.ADMIN, "not there"), database) == []
    with pytest.raises(ImpersonationDenied):
        as_(Role.VIEWER).help_change_data_capture(database, principal=reader)


def test_a_role_in_the_dashboard_runs_jobs_without_owning_the_database(engine, gated, as_):
    database, _, reader = gated
    assert len(as_(Role.VIEWER, reader).help_jobs(database)) == 2
    as_(Role.OPERATOR, reader).change_job(database, maxtrans=9)
    assert run(as_(Role.OPERATOR, reader), database, "EXEC sys.sp_cdc_change_job @maxtrans = 11").errors == []
    assert engine.help_jobs(database)[0].configured.maxtrans == 11
    [error] = run(as_(Role.OPERATOR, reader), database, "EXEC sys.sp_cdc_drop_job 'cleanup'").errors
    assert (error.number, error.severity) == (229, 14)


def test_statements_at_the_source_need_a_principal_unless_by_an_admin(engine, gated, as_):
    database, _, _ = gated
    [error] = run(as_(Role.OPERATOR), database, "SELECT * FROM hr.note").errors
    assert error.number == 916
    with pytest.raises(SourceDenied):
        as_(Role.VIEWER).sql_session(database)
    assert run(as_(Role.ADMIN), database, "INSERT INTO hr.note VALUES ('a')").errors == []


def test_a_viewer_reads_with_the_rights_of_the_principal_and_changes_nothing(gated, sql, as_):
    database, _, reader = gated
    sql(
        f"INSERT INTO hr.note VALUES ('a'); GRANT ALL ON hr.note TO \"{reader}\"; CREATE TABLE hr.pay (n int)"
    )
    viewer = as_(Role.VIEWER, reader)
    assert run(viewer, database, "SELECT text FROM hr.note").results == [[("a",)]]
    for statement in (
        "INSERT INTO hr.note VALUES ('b')",
        "SELECT * FROM hr.pay",
        "BEGIN TRANSACTION; DELETE FROM hr.note; COMMIT",
        "EXEC sys.sp_cdc_stop_job",
        "EXECUTE AS USER = 'postgres'; DELETE FROM hr.note",
    ):
        assert {error.number for error in run(viewer, database, statement).errors} & {229, 15517}, statement
    assert sql("SELECT text FROM hr.note") == [("a",)]
    assert run(as_(Role.OPERATOR, reader), database, "DELETE FROM hr.note").errors == []
    assert sql("SELECT text FROM hr.note") == []


def test_no_principal_takes_on_rights_that_it_has_not(engine, gated, sql, as_):
    """The home may be connected as a superuser, whom PostgreSQL would let become anybody."""
    database, gate, reader = gated
    sql(f'GRANT "{gate}" TO "{reader}"')
    session = as_(Role.OPERATOR, reader).sql_session(database)
    try:
        session.impersonate(gate)
        session.impersonate(None)
        assert list(session.query("SELECT current_user::text").rows) == [(reader,)]
        [[boss]] = sql("SELECT rolname FROM pg_roles WHERE rolsuper LIMIT 1")
        with pytest.raises(StatementRefused):
            session.impersonate(boss)
    finally:
        session.close()


def test_a_console_writes_down_its_batches(engine, enabled, as_):
    shown = Shown()
    console = as_(Role.ADMIN).script_session(enabled, shown)
    try:
        console.run("SELECT 1\nGO\nSELECT * FROM hr.nothing", Event())
    finally:
        console.close()
    failed, good = engine.activity(2)
    assert (good.command, good.outcome, good.user_name) == ("batch", Outcome.OK, "sam")
    assert good.statement == "USE [hr];\nGO\nSELECT 1"
    assert (failed.outcome, failed.error_number) == (Outcome.FAILED, 208)


def test_an_action_that_can_not_be_written_down_does_not_begin(engine, enabled, control_dsn):
    with psycopg.connect(control_dsn, autocommit=True) as connection:
        connection.execute("ALTER TABLE dbo.highwater_activity RENAME TO away")
    with pytest.raises(CdcError):
        engine.disable_db(enabled)
    assert engine.database(enabled).is_cdc_enabled


def test_every_command_was_tried(engine):
    assert set(COMMANDS) < set(GUARDED)
