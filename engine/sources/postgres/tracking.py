"""A table's tracking on the source: full row images, publication, TRUNCATE guard; given and taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from engine.model.capture_instance import CaptureInstance
from engine.sources.postgres.connection import Connection
from engine.sources.postgres.names import (
    FIXED_PARTITIONS,
    PUBLICATION,
    SCHEMA,
    TRACKED_INDEXES,
    TRACKED_TABLES,
    TRUNCATE_GUARD,
    TRUNCATE_TRIGGER,
)

_TRACKED = sql.Identifier(SCHEMA, TRACKED_TABLES)
_INDEXES = sql.Identifier(SCHEMA, TRACKED_INDEXES)
_FIXED = sql.Identifier(SCHEMA, FIXED_PARTITIONS)
_TRIGGER = sql.Identifier(TRUNCATE_TRIGGER)

# The table and its partitions: each partition logs its own rows.
_MEMBERS = """
SELECT c.oid, n.nspname, c.relname, c.relreplident::text,
       (SELECT i.indexrelid FROM pg_index i WHERE i.indrelid = c.oid AND i.indisreplident)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = %(oid)s OR c.oid IN (SELECT relid FROM pg_partition_tree(%(oid)s::oid::regclass))
ORDER BY c.oid <> %(oid)s, c.oid
"""

_BEFORE = """
SELECT n.nspname, c.relname, t.replica_identity::text, i.relname,
       EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid AND g.tgname = %(trigger)s)
FROM {tracked} t
JOIN pg_class c ON c.oid = t.table_id JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_class i ON i.oid = t.replica_index AND i.relkind = 'i'
WHERE t.root_id = %(root)s::oid
ORDER BY c.oid <> t.root_id, c.oid
"""

_STRAYS = """
WITH signs(id) AS (
    SELECT r.prrelid FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
    WHERE p.pubname = %(publication)s
    UNION SELECT tgrelid FROM pg_trigger WHERE tgname = %(trigger)s
    UNION SELECT unnest(%(oids)s::oid[])
), members(id) AS (
    SELECT id FROM signs UNION SELECT t.relid FROM signs, pg_partition_tree(signs.id::regclass) t
)
SELECT n.nspname, c.relname,
       EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid AND g.tgname = %(trigger)s),
       c.relreplident = 'f' AND NOT EXISTS (
           SELECT FROM pg_publication_tables o
           WHERE o.schemaname = n.nspname AND o.tablename = c.relname AND o.pubname <> %(publication)s)
FROM members JOIN pg_class c ON c.oid = members.id JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.oid <> ALL(%(known)s::oid[])
ORDER BY c.oid
"""

_BLOCKERS = """
SELECT a.pid, a.usename, a.state, coalesce(left(regexp_replace(a.query, '\\s+', ' ', 'g'), 80), '')
FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.relation = to_regclass(%s) AND l.granted AND l.pid <> pg_backend_pid()
ORDER BY a.xact_start LIMIT 3
"""


@dataclass
class Commands:
    """Statements run one after the other; remembers the one that an error belongs to."""

    connection: Connection
    last: str = ""

    def run(self, statement: sql.Composable | str, values: Any = None) -> psycopg.Cursor[tuple[Any, ...]]:
        """Runs one statement."""
        text = statement if isinstance(statement, str) else statement.as_string(self.connection)
        self.last = " ".join(text.split())
        return self.connection.execute(text.encode(), values)


def is_tracked(commands: Commands, oid: int) -> bool:
    """Whether the table's changes are published for us."""
    found = commands.run(
        "SELECT 1 FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid "
        "WHERE p.pubname = %s AND r.prrelid = %s",
        [PUBLICATION, oid],
    )
    return found.fetchone() is not None


def track(commands: Commands, oid: int) -> None:
    """Full row images, TRUNCATE guard and publication of a table with its partitions, not its heirs.

    What the replica identity was goes into cdc.tracked_tables. Tables that inherit from it have rows of
    their own, and without replica identities of their own could not be written any more once published.
    """
    members = commands.run(_MEMBERS, {"oid": oid}).fetchall()
    for member, schema, name, identity, index in members:
        table = sql.Identifier(schema, name)
        commands.run(
            sql.SQL(
                "INSERT INTO {} VALUES (%s::oid, %s::oid, %s, %s::oid) ON CONFLICT (table_id) DO NOTHING"
            ).format(_TRACKED),
            [member, oid, identity, index],
        )
        if identity != "f":
            commands.run(sql.SQL("ALTER TABLE ONLY {} REPLICA IDENTITY FULL").format(table))
        _guard(commands, table)
    _, schema, name, *_ = members[0]
    commands.run(
        sql.SQL("ALTER PUBLICATION {} ADD TABLE ONLY {}").format(
            sql.Identifier(PUBLICATION), sql.Identifier(schema, name)
        )
    )


def _guard(commands: Commands, table: sql.Identifier) -> None:
    """The trigger that refuses TRUNCATE, in replica sessions too."""
    commands.run(sql.SQL("DROP TRIGGER IF EXISTS {} ON {}").format(_TRIGGER, table))
    commands.run(
        sql.SQL("CREATE TRIGGER {} BEFORE TRUNCATE ON {} FOR EACH STATEMENT EXECUTE FUNCTION {}()").format(
            _TRIGGER, table, sql.Identifier(SCHEMA, TRUNCATE_GUARD)
        )
    )
    commands.run(sql.SQL("ALTER TABLE ONLY {} ENABLE ALWAYS TRIGGER {}").format(table, _TRIGGER))


def untrack(commands: Commands, oid: int) -> None:
    """Takes `track` back: publication, guard, and the replica identity that was there before."""
    if is_tracked(commands, oid):
        row = commands.run(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.oid = %s",
            [oid],
        ).fetchone()
        assert row is not None
        commands.run(
            sql.SQL("ALTER PUBLICATION {} DROP TABLE ONLY {}").format(
                sql.Identifier(PUBLICATION), sql.Identifier(*row)
            )
        )
    before = sql.SQL(_BEFORE).format(tracked=_TRACKED)
    for schema, name, identity, index, guarded in commands.run(
        before, {"trigger": TRUNCATE_TRIGGER, "root": oid}
    ).fetchall():
        table = sql.Identifier(schema, name)
        if guarded:
            commands.run(sql.SQL("DROP TRIGGER {} ON {}").format(_TRIGGER, table))
        if identity != "f":
            commands.run(
                sql.SQL("ALTER TABLE ONLY {} REPLICA IDENTITY {}").format(table, _identity(identity, index))
            )
    commands.run(sql.SQL("DELETE FROM {} WHERE root_id = %s::oid").format(_TRACKED), [oid])


def untrack_all(commands: Commands, oids: Sequence[int] = ()) -> None:
    """Takes `track` back for every table there is a sign of, and for those with ``oids``.

    Of tables that are not in cdc.tracked_tables, say because that was dropped by hand or is not whole in
    a restored copy, nobody knows the replica identity before: they get the default, unless another
    publication needs what they have.
    """
    known: list[int] = []
    if commands.run("SELECT to_regclass('cdc.tracked_tables')::text").fetchone() != (None,):
        listed = commands.run(sql.SQL("SELECT table_id::oid FROM {}").format(_TRACKED))
        known = [row[0] for row in listed.fetchall()]
    names = {
        "publication": PUBLICATION,
        "trigger": TRUNCATE_TRIGGER,
        "oids": list(oids),
        "known": known,
    }
    strays = commands.run(_STRAYS, names).fetchall()
    for root in tracked_roots(commands) if known else ():
        untrack(commands, root)
    for schema, name, guarded, is_full in strays:
        table = sql.Identifier(schema, name)
        if guarded:
            commands.run(sql.SQL("DROP TRIGGER {} ON {}").format(_TRIGGER, table))
        if is_full:
            commands.run(sql.SQL("ALTER TABLE ONLY {} REPLICA IDENTITY DEFAULT").format(table))


def guard_index(commands: Commands, instance: CaptureInstance) -> None:
    """The index that identifies the instance's rows may not be altered or dropped from now on."""
    if instance.index_name is not None:
        commands.run(
            sql.SQL("INSERT INTO {} VALUES (%s, %s::oid, %s, %s) ON CONFLICT DO NOTHING").format(_INDEXES),
            [
                instance.object_id,
                instance.source_object_id,
                instance.index_name,
                [column.column_id for column in instance.index_columns],
            ],
        )


def release_index(commands: Commands, instance: CaptureInstance) -> None:
    """Takes `guard_index` back."""
    commands.run(sql.SQL("DELETE FROM {} WHERE object_id = %s").format(_INDEXES), [instance.object_id])


def fix_partitions(commands: Commands, instance: CaptureInstance) -> None:
    """Unless the instance allows partition switch, no partition comes or goes from now on."""
    if not instance.partition_switch:
        commands.run(
            sql.SQL("INSERT INTO {} VALUES (%s, %s::oid) ON CONFLICT DO NOTHING").format(_FIXED),
            [instance.object_id, instance.source_object_id],
        )


def release_partitions(commands: Commands, instance: CaptureInstance) -> None:
    """Takes `fix_partitions` back."""
    if not instance.partition_switch:
        commands.run(sql.SQL("DELETE FROM {} WHERE object_id = %s").format(_FIXED), [instance.object_id])


def _identity(letter: str, index: str | None) -> sql.Composable:
    if letter == "i" and index is not None:
        return sql.SQL("USING INDEX {}").format(sql.Identifier(index))
    return sql.SQL("NOTHING" if letter == "n" else "DEFAULT")


def tracked_roots(commands: Commands) -> Sequence[int]:
    """Tables (partitions' roots) that `track` was called for and that are still there."""
    rows = commands.run(
        sql.SQL("SELECT DISTINCT t.root_id::oid FROM {} t JOIN pg_class c ON c.oid = t.root_id").format(
            _TRACKED
        )
    ).fetchall()
    return [row[0] for row in rows]


def blockers(connection: Connection, schema: str, name: str) -> str:
    """Who holds locks on the table, in words; empty when nobody does any more."""
    table = sql.Identifier(schema, name).as_string(connection)
    rows = connection.execute(_BLOCKERS, [table]).fetchall()
    return "; ".join(f"pid {pid} ({user}, {state}): {query}" for pid, user, state, query in rows)
