"""What keeps a PostgreSQL database from being captured, each with the statement that mends it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from psycopg import sql

from engine.model.capture_instance import CaptureInstance
from engine.sources.base import GONE, SourceProblem
from engine.sources.postgres import objects
from engine.sources.postgres.connection import Connection, any_bytes
from engine.sources.postgres.names import (
    EVENT_TRIGGERS,
    PUBLICATION,
    SCHEMA,
    TRACKED_INDEXES,
    TRACKED_TABLES,
)

OLDEST_VERSION = 140000

_FACTS = """
SELECT current_setting('server_version_num')::int AS version, version() AS server,
       pg_is_in_recovery() AS standby, current_setting('wal_level') AS wal_level,
       current_setting('max_replication_slots')::int AS slot_limit,
       (SELECT count(*) FROM pg_replication_slots) AS slots,
       EXISTS (SELECT FROM pg_replication_slots
               WHERE slot_name = %(slot)s AND database = current_database()) AS own_slot,
       current_user AS role, r.rolreplication OR r.rolsuper AS may_replicate,
       has_database_privilege(current_database(), 'CREATE') AS may_create,
       current_database() AS database, current_setting('server_encoding') AS encoding,
       coalesce(current_setting('max_slot_wal_keep_size', true), '-1') AS keep_size,
       coalesce(current_setting('idle_replication_slot_timeout', true), '0') AS slot_timeout,
       EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
               WHERE n.nspname = 'cdc' AND p.proname = 'refuse_truncate') AS is_enabled,
       r.rolsuper AS is_superuser,
       (SELECT has_function_privilege(p.oid, 'EXECUTE') FROM pg_proc p
        WHERE p.proname = 'pg_log_standby_snapshot' LIMIT 1) AS may_log_snapshot
FROM pg_roles r WHERE r.rolname = current_user
"""

_NOT_FULL = """
SELECT format('%%I.%%I', n.nspname, c.relname)
FROM pg_publication_tables p
JOIN pg_namespace pn ON pn.nspname = p.schemaname
JOIN pg_class pc ON pc.relnamespace = pn.oid AND pc.relname = p.tablename
CROSS JOIN LATERAL (
    SELECT pc.oid AS relid UNION SELECT t.relid FROM pg_partition_tree(pc.oid) t WHERE t.isleaf
) l
JOIN pg_class c ON c.oid = l.relid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname = %s AND c.relreplident <> 'f'
ORDER BY 1
"""


_OBJECTS = """
SELECT (SELECT bool_and(to_regclass(t) IS NOT NULL) FROM unnest(%(tables)s::text[]) t),
       EXISTS (SELECT FROM pg_publication WHERE pubname = %(publication)s),
       EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = %(slot)s AND database = current_database())
"""

_TRACKED = """
SELECT c.oid, EXISTS (
    SELECT FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
    WHERE p.pubname = %s AND r.prrelid = c.oid)
FROM pg_class c WHERE c.oid = ANY(%s::oid[])
"""


def problems(connection: Connection, slot: str, database: str) -> Iterator[SourceProblem]:
    """Everything that is wrong, fatal or not. ``database`` is its name here."""
    if connection.info.server_version < OLDEST_VERSION:
        version = connection.info.server_version // 10000
        yield SourceProblem(
            "version",
            f"PostgreSQL {version} is too old: 14 is needed.",
            "Upgrade the server to PostgreSQL 14 or newer.",
        )
        return
    cursor = connection.execute(_FACTS, {"slot": slot})
    row = cursor.fetchone()
    assert row is not None
    assert cursor.description is not None
    facts = {column.name: value for column, value in zip(cursor.description, row, strict=True)}
    yield from _server_problems(facts)
    yield from _rights_problems(facts, connection)
    if facts["is_enabled"] and not facts["own_slot"]:
        yield SourceProblem(
            "copy",
            "The database has Highwater's schema cdc, but no replication slot of its own: it is a copy of an "
            "enabled database, or its slot was dropped. It can be enabled anew once it is disabled.",
            f"highwater disable -d {shlex.quote(database)}",
            fatal=False,
        )
    yield from _outdated(connection, database)
    if facts["is_enabled"]:
        yield from _trigger_problems(connection, EVENT_TRIGGERS)
    elif not facts["is_superuser"]:
        yield _no_trigger_right(facts["role"])
    yield from _soft_problems(facts)
    if facts["may_log_snapshot"] is False:
        role = sql.Identifier(facts["role"]).as_string(connection)
        yield SourceProblem(
            "restart of decoding",
            f"Role {facts['role']} may not mark where decoding can begin: under load scans read log twice.",
            f"GRANT EXECUTE ON FUNCTION pg_log_standby_snapshot() TO {role};",
            fatal=False,
        )
    yield from _not_full(connection)


def missing_objects(connection: Connection, slot: str) -> list[str]:
    """What `enable_database` made and is not there any more."""
    tables = [f"{SCHEMA}.{TRACKED_TABLES}"]
    if not objects.is_outdated(connection):
        tables.append(f"{SCHEMA}.{TRACKED_INDEXES}")
    row = connection.execute(
        _OBJECTS, {"tables": tables, "publication": PUBLICATION, "slot": slot}
    ).fetchone()
    assert row is not None
    names = (f"schema {SCHEMA}", f"publication {PUBLICATION}", f"replication slot {slot}")
    return [name for name, is_there in zip(names, row, strict=True) if not is_there]


def tracking_problems(
    connection: Connection, slot: str, database: str, instances: Sequence[CaptureInstance]
) -> Iterator[SourceProblem]:
    """Tracked tables that are gone, not published any more, or do not log whole old rows.

    Event triggers refuse all of it; a role that may not create them has to be told.
    """
    if gone := missing_objects(connection, slot):
        name = shlex.quote(database)
        yield SourceProblem(
            GONE,
            f"What enabling made was dropped by hand: {' and '.join(gone)}. Changes since may be lost.",
            f"highwater disable -d {name}; highwater enable -d {name}",
        )
        return
    yield from _outdated(connection, database)
    # A role that may not create any is told so by `problems`; here, where a superuser once created some.
    yield from _trigger_problems(
        connection, EVENT_TRIGGERS if objects.event_trigger_states(connection) else ()
    )
    oids = [instance.source_object_id for instance in instances]
    found: dict[int, bool] = dict(connection.execute(_TRACKED, [PUBLICATION, oids]).fetchall())
    for instance in instances:
        table = f"{instance.source_schema}.{instance.source_table}"
        again = f"highwater disable -d {database} {table} --capture-instance {instance.capture_instance}"
        if instance.source_object_id not in found:
            problem = f"Table {table} of capture instance {instance.capture_instance} was dropped."
            yield SourceProblem("dropped table", problem, again, fatal=False)
        elif not found[instance.source_object_id]:
            problem = f"Table {table} was taken out of publication {PUBLICATION}: it is not captured."
            yield SourceProblem("publication", problem, f"{again}; highwater enable -d {database} {table}")
    yield from _not_full(connection)


def _not_full(connection: Connection) -> Iterator[SourceProblem]:
    with any_bytes(connection):
        tables = connection.execute(_NOT_FULL, [PUBLICATION]).fetchall()
    for (table,) in tables:
        yield SourceProblem(
            "replica identity",
            f"{table} is tracked, but does not log whole old rows: an update or delete stops capture, or "
            "is refused where the table has no key.",
            f"ALTER TABLE {table} REPLICA IDENTITY FULL;",
            fatal=False,
        )


def _server_problems(facts: dict[str, Any]) -> Iterator[SourceProblem]:
    if facts["standby"]:
        yield SourceProblem(
            "standby",
            "The server is a standby: nothing can be enabled there.",
            "Connect to the primary server.",
        )
    if facts["wal_level"] != "logical":
        yield SourceProblem(
            "wal_level",
            f"wal_level is {facts['wal_level']}: the log does not say what changed.",
            "ALTER SYSTEM SET wal_level = 'logical'; then restart PostgreSQL.",
        )
    if facts["slots"] >= facts["slot_limit"] and not facts["own_slot"]:
        yield SourceProblem(
            "max_replication_slots",
            f"All {facts['slot_limit']} replication slots are in use.",
            f"ALTER SYSTEM SET max_replication_slots = {facts['slots'] + 4}; then restart PostgreSQL. "
            "Or drop a slot that nobody reads: SELECT pg_drop_replication_slot('...');",
        )


def _rights_problems(facts: dict[str, Any], connection: Connection) -> Iterator[SourceProblem]:
    role = sql.Identifier(facts["role"]).as_string(connection)
    if not facts["may_replicate"]:
        yield SourceProblem(
            "replication right",
            f"Role {facts['role']} may not read the log.",
            f"ALTER ROLE {role} REPLICATION;",
        )
    if not facts["may_create"]:
        database = sql.Identifier(facts["database"]).as_string(connection)
        yield SourceProblem(
            "create right",
            f"Role {facts['role']} may not create a schema and a publication in {facts['database']}.",
            f"GRANT CREATE ON DATABASE {database} TO {role};",
        )


def _outdated(connection: Connection, database: str) -> Iterator[SourceProblem]:
    """Objects of an earlier version that this role can't upgrade, or nobody has yet."""
    if not objects.is_outdated(connection):
        return
    name = shlex.quote(database)
    grant, but = "", ""
    if (missing := objects.missing_membership(connection)) is not None:
        owner, role = (sql.Identifier(each).as_string(connection) for each in missing)
        grant, but = f"GRANT {owner} TO {role}; then: ", f", but they are {owner}'s, and role {role} may not"
    yield SourceProblem(
        "earlier version",
        "The database was enabled by an earlier version: some DDL that would lose changes is not refused "
        f"there. Its functions and event triggers are upgraded when capture starts{but}.",
        f"{grant}highwater capture stop -d {name}; highwater capture start -d {name}",
        fatal=False,
    )


def _trigger_problems(connection: Connection, triggers: Iterable[str]) -> Iterator[SourceProblem]:
    """Those of ``triggers`` that do not fire in every session."""
    states = objects.event_trigger_states(connection)
    wanting = [trigger for trigger in triggers if states.get(trigger) != "A"]
    if not wanting:
        return
    statements = [
        each for trigger in wanting for each in objects.statements_for(trigger, states.get(trigger))
    ]
    yield SourceProblem(
        "event triggers",
        "DDL on tracked tables is not recorded in full, and nothing refuses what would lose changes "
        "(of keys, of replica identity, ATTACH and DETACH PARTITION where allow_partition_switch is 0): "
        f"event triggers of Highwater's are missing, or do not fire in every session: {', '.join(wanting)}.",
        f"As a superuser: {'; '.join(statements)};",
        fatal=False,
    )


def _no_trigger_right(role: str) -> SourceProblem:
    return SourceProblem(
        "event triggers",
        f"Role {role} may not create event triggers: DDL on tracked tables will be seen only by "
        "the shape of the rows that follow, without its text, and nothing will refuse what would lose "
        "changes (of keys, of replica identity, ATTACH and DETACH PARTITION where "
        "allow_partition_switch is 0).",
        "Enable the database as a superuser, or let one create the triggers that "
        "`highwater connect` names afterwards.",
        fatal=False,
    )


def _soft_problems(facts: dict[str, Any]) -> Iterator[SourceProblem]:
    if facts["encoding"] == "SQL_ASCII":
        yield SourceProblem(
            "encoding",
            "The database does not know the encoding of its texts: "
            "bytes that are not UTF-8 are captured as \\xNN.",
            "Move the data to a database created with ENCODING 'UTF8'.",
            fatal=False,
        )
    if facts["keep_size"] != "-1":
        yield SourceProblem(
            "max_slot_wal_keep_size",
            f"The server drops log that was not read once it holds {facts['keep_size']}: "
            "changes could be lost.",
            "ALTER SYSTEM SET max_slot_wal_keep_size = -1; SELECT pg_reload_conf();",
            fatal=False,
        )
    if facts["slot_timeout"] not in ("0", "0s", "0min"):
        yield SourceProblem(
            "idle_replication_slot_timeout",
            f"The server invalidates a slot that nobody reads for {facts['slot_timeout']}: "
            "changes could be lost.",
            "ALTER SYSTEM SET idle_replication_slot_timeout = 0; SELECT pg_reload_conf();",
            fatal=False,
        )
