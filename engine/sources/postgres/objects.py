"""The objects of schema ``cdc`` in a source: made by enabling, upgraded where an earlier version did so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files

import psycopg
from psycopg import sql

from engine.model.capture_instance import CaptureInstance
from engine.sources.postgres import tracking
from engine.sources.postgres.connection import Connection
from engine.sources.postgres.names import (
    EVENT_TRIGGERS,
    SCHEMA,
    SCHEMA_COMMENT,
    SCHEMA_WARNING,
    TRACKED_TABLES,
    TRIGGER_FUNCTIONS,
    TRUNCATE_GUARD,
    UNSEALED_WORDS,
    VERSION,
    always,
)
from engine.sources.postgres.tracking import Commands

LOCK_TIMEOUT = "5s"

# Others are made anew: in another version they may have other parameters. These are called by triggers.
_KEPT_FUNCTIONS = (TRUNCATE_GUARD, *TRIGGER_FUNCTIONS)
_FUNCTIONS = """
SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = %s AND p.proname <> ALL(%s)
"""
_IDLE = """
CREATE OR REPLACE FUNCTION cdc.{}() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'
"""


def installed_version(connection: Connection) -> int | None:
    """The version of a database's objects: 0 before versions had numbers, None where there are none."""
    rows = connection.execute(
        "SELECT p.proname::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        " WHERE n.nspname = %s AND p.proname IN (%s, 'version')",
        [SCHEMA, TRUNCATE_GUARD],
    )
    there = {name for (name,) in rows.fetchall()}
    if "version" not in there:
        return 0 if there else None
    row = connection.execute("SELECT cdc.version()").fetchone()
    assert row is not None
    return int(row[0])


def is_outdated(connection: Connection) -> bool:
    """Whether an earlier version made the objects."""
    installed = installed_version(connection)
    return installed is not None and installed < VERSION


def make(commands: Commands) -> None:
    """Schema, tables, functions and, where the role may, event triggers. A schema ``cdc`` is an error."""
    commands.run(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(SCHEMA)))
    comment = sql.Literal(f"{SCHEMA_COMMENT} {SCHEMA_WARNING}")
    commands.run(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(SCHEMA), comment))
    _run_script(commands)
    commands.run(f"INSERT INTO {SCHEMA}.{UNSEALED_WORDS} VALUES (0, 0)")


def upgrade(commands: Commands, instances: Sequence[CaptureInstance]) -> bool:
    """Brings the objects up to this version in one transaction; False when they are.

    instances: all of the database, whose rows an earlier version may not have written. Sessions that run
    DDL meanwhile meet either version, whole. It is done as the objects' owner, whose they stay. Raises
    psycopg.Error: InsufficientPrivilege where the role is no member of the owner's, LockNotAvailable.
    """
    replaced = is_outdated(commands.connection) and _replace(commands, instances)
    return _demand_seals(commands) or replaced


def _replace(commands: Commands, instances: Sequence[CaptureInstance]) -> bool:
    with commands.connection.transaction():
        commands.run(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        commands.run(f"LOCK TABLE {SCHEMA}.{TRACKED_TABLES} IN SHARE UPDATE EXCLUSIVE MODE")
        if not is_outdated(commands.connection):
            return False  # somebody else was faster
        _become(commands, _other_owner(commands.connection))
        # They would call what is being replaced.
        for function in TRIGGER_FUNCTIONS:
            commands.run(_IDLE.format(function))
        for (function,) in commands.run(_FUNCTIONS, [SCHEMA, list(_KEPT_FUNCTIONS)]).fetchall():
            commands.run(f"DROP FUNCTION {function}")
        _run_script(commands)
        for instance in instances:
            _register(commands, instance)
        commands.run("RESET ROLE")
        make_event_triggers(commands)
    return True


def _demand_seals(commands: Commands) -> bool:
    """Ends an upgrade: words of transactions that begin from now on need a seal; False where that is so.

    After the upgrade's commit: only then does whoever gets a transaction id call the new functions.
    """
    connection = commands.connection
    if installed_version(connection) is None or missing_membership(connection) is not None:
        return False
    with connection.transaction():
        _become(commands, _other_owner(connection))
        demanded = commands.run(
            # An id of its own: those of transactions that are still open are lower, and so may be later ones
            # that a snapshot would tell.
            f"INSERT INTO {SCHEMA}.{UNSEALED_WORDS} SELECT txid_current(), system_identifier"
            f" FROM pg_control_system() WHERE NOT EXISTS (SELECT FROM {SCHEMA}.{UNSEALED_WORDS})"
            " ON CONFLICT DO NOTHING"
        )
    return demanded.rowcount > 0


def missing_membership(connection: Connection) -> tuple[str, str] | None:
    """The objects' owner and the connected role, where that may not act as the owner."""
    owner = _other_owner(connection)
    if owner is None:
        return None
    row = connection.execute("SELECT pg_has_role(%s::name, 'MEMBER'), current_user::text", [owner]).fetchone()
    assert row is not None
    is_member, role = row
    return None if is_member else (owner, str(role))


def _other_owner(connection: Connection) -> str | None:
    """The role that owns the objects, where it is another than the connected one."""
    row = connection.execute(
        "SELECT pg_get_userbyid(nspowner)::text FROM pg_namespace"
        " WHERE nspname = %s AND pg_get_userbyid(nspowner) <> current_user",
        [SCHEMA],
    ).fetchone()
    return None if row is None else str(row[0])


def make_event_triggers(commands: Commands) -> None:
    """Those that are missing, where the role may; one that somebody disabled stays so.

    Capture works without: DDL is then seen by the shape of rows, and `fitness` says what is missing.
    """
    states = event_trigger_states(commands.connection)
    with suppress(psycopg.errors.InsufficientPrivilege), commands.connection.transaction():
        for trigger in EVENT_TRIGGERS:
            for statement in statements_for(trigger, states.get(trigger)):
                if states.get(trigger) != "D":
                    commands.run(statement)


def statements_for(trigger: str, state: str | None) -> Sequence[str]:
    """What has to be run until an event trigger fires always; state as in `event_trigger_states`."""
    if state is None:
        return EVENT_TRIGGERS[trigger], always(trigger)
    return () if state == "A" else (always(trigger),)


def event_trigger_states(connection: Connection) -> Mapping[str, str]:
    """``pg_event_trigger.evtenabled`` of those event triggers that are there: A for always."""
    rows = connection.execute(
        "SELECT evtname::text, evtenabled::text FROM pg_event_trigger WHERE evtname = ANY(%s)",
        [list(EVENT_TRIGGERS)],
    )
    return dict(rows.fetchall())


def _run_script(commands: Commands) -> None:
    script = files("engine.sources.postgres").joinpath("enable.sql").read_text()
    commands.last = "enable.sql"
    commands.connection.execute(script.encode())


def _become(commands: Commands, owner: str | None) -> None:
    if owner is not None:
        commands.run(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(owner)))


def _register(commands: Commands, instance: CaptureInstance) -> None:
    """What event triggers have to know of an instance and an earlier version did not write down."""
    connection, table = commands.connection, instance.source_object_id
    if commands.run("SELECT FROM pg_class WHERE oid = %s", [table]).fetchone() is None:
        return
    # Where the index is gone already, nothing is left to refuse; the table's other DDL must go on.
    with suppress(psycopg.errors.ObjectNotInPrerequisiteState), connection.transaction():
        tracking.guard_index(commands, instance)
        commands.run("SELECT cdc.check_keys(ARRAY[%s::oid], NULL)", [table])
    tracking.fix_partitions(commands, instance)
