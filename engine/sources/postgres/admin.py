"""Enabling, disabling and inspecting a PostgreSQL database."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import psycopg
from psycopg import sql

from engine.errors import (
    CdcError,
    CdcSchemaExists,
    NameNotUtf8,
    ObjectsGone,
    ObjectsNotCreated,
    ObjectsNotDropped,
    RoleNotCreated,
    SystemDatabase,
    TableMissing,
    TableNotMarked,
    TableNotUnmarked,
)
from engine.model.capture_instance import CaptureInstance
from engine.model.lsn import Lsn
from engine.sources.base import Privileges, SourceProblem, SourceTable
from engine.sources.postgres import fitness, objects, tracking
from engine.sources.postgres.catalog import source_tables, unreadable_name
from engine.sources.postgres.connection import (
    Connection,
    any_bytes,
    configure,
    connect,
    lsn_of,
    text_of,
    unreachable,
)
from engine.sources.postgres.log_messages import PREFIX, WRITE_MARK, disabled_json, enabled_json
from engine.sources.postgres.names import (
    EVENT_TRIGGERS,
    OWN_DDL,
    OWNER_COMMENT,
    PUBLICATION,
    SCHEMA,
    SCHEMA_COMMENT,
    SLOT_PREFIX,
    TRIGGER_FUNCTIONS,
    TRUNCATE_GUARD,
)
from engine.sources.postgres.privileges import privileges_of
from engine.sources.postgres.remains import remains
from engine.sources.postgres.snapshot import PostgresSnapshot, open_snapshot
from engine.sources.postgres.tracking import Commands

LOCK_TIMEOUT = "5s"
SLOT_TIMEOUT = "30s"
GENERATED_COLUMNS_VERSION = 180000
"""Since 18, a table with full row images refuses UPDATE unless its generated columns are published."""


class PostgresAdmin:
    """`SourceAdmin` over short connections of its own."""

    def __init__(self, dsn: str, slot: str, database: str) -> None:
        """``database`` is the name that errors speak of."""
        self._dsn = dsn
        self._slot = slot
        self._database = database

    # Inspecting

    def server(self) -> str:
        """Kind and version in words: ``PostgreSQL 18.1``. Raises SourceUnreachable."""
        with self._connected() as connection:
            return f"PostgreSQL {connection.info.parameter_status('server_version')}"

    def check(self) -> Sequence[SourceProblem]:
        """What keeps this database from being captured; empty when nothing does."""
        with self._connected() as connection:
            return list(fitness.problems(connection, self._slot, self._database))

    def tracking_problems(self, instances: Sequence[CaptureInstance]) -> Sequence[SourceProblem]:
        """What keeps tracked tables from being captured as they should: they are gone, or were changed."""
        with self._connected() as connection:
            return list(fitness.tracking_problems(connection, self._slot, self._database, instances))

    def tables(self) -> Sequence[SourceTable]:
        """Every table of the database that could be tracked, by schema and name; not what can't be named."""
        with self._connected() as connection:
            return [table for table in source_tables(connection) if unreadable_name(table) is None]

    def table(self, schema: str, name: str) -> SourceTable | None:
        """One table; None when it is not there."""
        with self._connected() as connection:
            return next(iter(source_tables(connection, schema, name)), None)

    def table_names(self, source_object_ids: Sequence[int]) -> Mapping[int, tuple[str, str]]:
        """Schema and name that tables have now; those that are gone are not in it."""
        with self._connected() as connection, any_bytes(connection):
            rows = connection.execute(
                "SELECT c.oid, n.nspname, c.relname FROM pg_class c"
                " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY(%s::oid[])",
                [list(source_object_ids)],
            )
            return {oid: (schema, name) for oid, schema, name in rows.fetchall()}

    def is_enabled(self) -> bool:
        """Whether the source's side of enable_database is in place: schema, publication and slot."""
        with self._connected() as connection:
            return _has_own_schema(connection) and _has_publication(connection) and self._has_slot(connection)

    def has_own_schema(self) -> bool:
        """Whether schema ``cdc`` is one that enable_database made, here or where this is a copy of."""
        with self._connected() as connection:
            return _has_own_schema(connection)

    def tablespaces(self) -> Sequence[str]:
        """Names of tablespaces, which are what filegroups are. Raises SourceUnreachable."""
        with self._connected() as connection:
            rows = connection.execute("SELECT spcname FROM pg_tablespace ORDER BY spcname").fetchall()
        return [str(name) for (name,) in rows]

    def place(self) -> str:
        """The server's run and the database's oid: a copied server has another start, if nothing else."""
        with self._connected() as connection:
            row = connection.execute(
                "SELECT format('%s/%s', extract(epoch FROM pg_postmaster_start_time()), oid)"
                " FROM pg_database WHERE datname = current_database()"
            ).fetchone()
        assert row is not None
        return str(row[0])

    def refuses_ddl(self) -> bool:
        """Whether the event triggers are there, which record DDL on tracked tables and refuse some."""
        with self._connected() as connection:
            states = objects.event_trigger_states(connection)
            return all(states.get(trigger, "D") != "D" for trigger in EVENT_TRIGGERS)

    def owner(self) -> str:
        """For whom the database was enabled, while its slot is there; empty where nobody knows."""
        with self._connected() as connection:
            if not self._has_slot(connection):
                return ""
            row = connection.execute(
                "SELECT substring(obj_description(oid, 'pg_namespace') FROM %s)"
                " FROM pg_namespace WHERE nspname = %s",
                [f"{OWNER_COMMENT}(\\S+)$", SCHEMA],
            ).fetchone()
        return "" if row is None else str(row[0] or "")

    def mark(self) -> Lsn:
        """A durable place in the log: everything committed before is below it. Raises ObjectsGone."""
        with self._connected() as connection:
            if gone := fitness.missing_objects(connection, self._slot):
                raise ObjectsGone(self._database, " and ".join(gone))
            configure(connection, {"synchronous_commit": "on"})
            # The commit flushes the log, also what others left to asynchronous commit. The flush position
            # may be farther, within a record that nobody waits for: see `LogPages`.
            row = connection.execute(WRITE_MARK).fetchone()
        assert row is not None
        return lsn_of(row[0])

    @contextmanager
    def snapshot(self, instance: CaptureInstance) -> Iterator[PostgresSnapshot]:
        """The source table as it is now, open within. Raises RowsNotTold, SourceUnreachable."""
        with open_snapshot(self._dsn, self._database, instance) as snapshot:
            yield snapshot

    # Database

    def enable_database(self, owner: str = "") -> None:
        """Schema ``cdc`` with its trigger functions, publication and slot; all or nothing.

        Raises SystemDatabase (22989) for a template, which every new database would copy, CdcSchemaExists
        (22906), ObjectsNotCreated (22908) with the source's error.
        """
        with self._connected() as connection:
            if _exists(
                connection, "SELECT 1 FROM pg_database WHERE datname = current_database() AND datistemplate"
            ):
                raise SystemDatabase(self._database)
            if _has_schema(connection):
                raise CdcSchemaExists(self._database, shlex.quote(self._database))
            commands = Commands(connection)
            with self._refused(commands, self._objects_not_created):
                self._drop_slot(commands)
                with connection.transaction():
                    self._make_objects(commands)
                    if owner:
                        _sign(commands, owner)
            try:
                with self._refused(commands, self._objects_not_created):
                    self._make_slot(commands)
            except BaseException:
                with self._refused(commands, self._objects_not_created), connection.transaction():
                    self._drop_event_triggers(commands)
                    self._drop_objects(commands)
                raise

    def disable_database(self, instances: Sequence[CaptureInstance]) -> None:
        """Takes back enable_database and whatever tracking of ``instances`` left on tables.

        Whether the slot and schema are there or not: what is missing is no error. A schema ``cdc`` that
        is not ours stays, and so do slots of other databases: this one may be a copy of theirs.
        Raises ObjectsNotDropped (22913).
        """
        oids = sorted({instance.source_object_id for instance in instances})
        with self._connected() as connection:
            commands = Commands(connection)
            # The slot goes last: it can't be put back, so nothing may fail after it.
            with self._refused(commands, self._objects_not_dropped), connection.transaction():
                commands.run(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
                # First: where somebody dropped parts of the schema by hand, they would refuse all DDL.
                self._drop_event_triggers(commands)
                tracking.untrack_all(commands, oids)
                self._drop_objects(commands)
                self._drop_slot(commands)

    def upgrade(self, instances: Sequence[CaptureInstance]) -> bool:
        """Brings what an earlier version made by enable_database up to this one; False when it is.

        instances: all of the database. Raises ObjectsNotCreated (22908) with the source's error; then
        nothing has changed, and `check` says what to do.
        """
        with self._connected() as connection:
            commands = Commands(connection)
            with self._refused(commands, self._objects_not_created):
                return objects.upgrade(commands, instances)

    def remains(self, instances: Sequence[CaptureInstance]) -> Sequence[SourceProblem]:
        """What `enable_database` and tracking ``instances`` made there; the source is not asked."""
        return list(remains(self._slot, instances))

    def _make_objects(self, commands: Commands) -> None:
        objects.make(commands)
        options = "publish = 'insert, update, delete', publish_via_partition_root = true"
        if commands.connection.info.server_version >= GENERATED_COLUMNS_VERSION:
            options += ", publish_generated_columns = 'stored'"
        commands.run(
            sql.SQL("CREATE PUBLICATION {} WITH ({})").format(sql.Identifier(PUBLICATION), sql.SQL(options))
        )
        objects.make_event_triggers(commands)

    def _drop_objects(self, commands: Commands) -> None:
        commands.run(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(PUBLICATION)))
        if _has_own_schema(commands.connection):
            commands.run(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(SCHEMA)))

    def _drop_event_triggers(self, commands: Commands) -> None:
        try:
            with commands.connection.transaction():
                for trigger in EVENT_TRIGGERS:
                    commands.run(sql.SQL("DROP EVENT TRIGGER IF EXISTS {}").format(sql.Identifier(trigger)))
        except psycopg.errors.InsufficientPrivilege:
            # A superuser made them for a role that may not: they go with our functions, all at once.
            functions = [sql.SQL("{}()").format(sql.Identifier(SCHEMA, name)) for name in TRIGGER_FUNCTIONS]
            commands.run(sql.SQL("DROP FUNCTION IF EXISTS {} CASCADE").format(sql.SQL(", ").join(functions)))

    def _make_slot(self, commands: Commands) -> None:
        # A slot begins where no older transaction is open: it waits for those that are.
        commands.run(f"SET statement_timeout = '{SLOT_TIMEOUT}'")
        commands.run("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [self._slot])
        commands.run("SET statement_timeout = 0")

    def _drop_slot(self, commands: Commands) -> None:
        commands.run(
            # By its beginning too: the database may have had another name when the slot was made.
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            " WHERE (slot_name = %s OR starts_with(slot_name::text, %s) AND plugin = 'pgoutput')"
            " AND database = current_database()",
            [self._slot, SLOT_PREFIX],
        )

    def _has_slot(self, connection: Connection) -> bool:
        return _exists(
            connection,
            "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND database = current_database()",
            self._slot,
        )

    # Roles

    def create_role(self, role: str) -> None:
        """A gating role when the source has none of that name. Raises RoleNotCreated (22944)."""
        with self._connected() as connection:
            if _exists(connection, "SELECT 1 FROM pg_roles WHERE rolname = %s", role):
                return
            commands = Commands(connection)
            with self._refused(commands, lambda command, error: RoleNotCreated(role, self._database, error)):
                commands.run(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(role)))

    def privileges(self, principal: str, instances: Sequence[CaptureInstance]) -> Privileges:
        """What a role may do with the tables of ``instances`` and their gating roles; nothing if unknown."""
        with self._connected() as connection:
            return privileges_of(connection, principal, instances)

    # Tables

    def enable_table(self, instance: CaptureInstance) -> None:
        """One source transaction: full row images, publication, TRUNCATE guard, and the word in the log.

        For a second instance of a table it is the word alone. Raises TableNotMarked (22832) with the
        source's error, TableMissing (22931) when it has been dropped; then nothing has changed.
        """
        self._change_table(instance, TableNotMarked, lambda commands: _enable(commands, instance))

    def disable_table(self, instance: CaptureInstance, last_of_table: bool) -> None:
        """The word in the log that ``instance`` ends; ``last_of_table`` takes the table's tracking back.

        A table that has been dropped is no error. Raises TableNotUnmarked (22833).
        """
        self._change_table(
            instance, TableNotUnmarked, lambda commands: _disable(commands, instance, last_of_table)
        )

    def _change_table(
        self,
        instance: CaptureInstance,
        error_class: type[CdcError],
        change: Callable[[Commands], None],
    ) -> None:
        table = f"{instance.source_schema}.{instance.source_table}"
        with self._connected() as connection:
            commands = Commands(connection)

            def refused(command: str, error: psycopg.Error) -> CdcError:
                words = self._words(connection, instance, error)
                return error_class(table, command, error.sqlstate or "", words)

            with self._refused(commands, refused), connection.transaction():
                connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
                connection.execute("SET LOCAL synchronous_commit = on")
                commands.run(OWN_DDL)
                change(commands)

    def _words(self, connection: Connection, instance: CaptureInstance, error: psycopg.Error) -> str:
        """The server's words, and what to do about the usual ones."""
        words = text_of(error)
        if connection.closed:
            return words
        if isinstance(error, psycopg.errors.LockNotAvailable):
            holders = tracking.blockers(connection, instance.source_schema, instance.source_table)
            return f"The table is in use for longer than {LOCK_TIMEOUT}. {holders or words}"
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return f"{words}. {_ownership(connection, instance)}"
        return words

    # Plumbing

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        connection = connect(self._dsn, self._database, "highwater admin")
        with connection, unreachable(self._database):
            yield connection

    @contextmanager
    def _refused(
        self, commands: Commands, error_of: Callable[[str, psycopg.Error], CdcError]
    ) -> Iterator[None]:
        """Turns the source's refusal into ``error_of(command, error)``."""
        try:
            yield
        except psycopg.Error as error:
            with unreachable(self._database):
                if commands.connection.closed:
                    raise
            raise error_of(commands.last, error) from error

    def _objects_not_created(self, command: str, error: psycopg.Error) -> CdcError:
        words = text_of(error)
        if isinstance(error, psycopg.errors.QueryCanceled):
            words = (
                f"the slot waits for transactions that are open for longer than {SLOT_TIMEOUT}: end them "
                "(SELECT pid, xact_start, query FROM pg_stat_activity WHERE backend_xid IS NOT NULL) "
                "and retry"
            )
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            words += " (a role with REPLICATION and CREATE on the database is needed)"
        if isinstance(error, psycopg.errors.DuplicateObject) and PUBLICATION in words:
            words += f". Where it is left from a capture that ended: DROP PUBLICATION {PUBLICATION};"
        return ObjectsNotCreated(self._database, f"command '{command}' failed: {words}")

    def _objects_not_dropped(self, command: str, error: psycopg.Error) -> CdcError:
        words = text_of(error)
        if isinstance(error, psycopg.errors.LockNotAvailable):
            words = f"a table is in use for longer than {LOCK_TIMEOUT}: end its transactions, and retry"
        return ObjectsNotDropped(self._database, f"command '{command}' failed: {words}")


def _enable(commands: Commands, instance: CaptureInstance) -> None:
    schema, name = instance.source_schema, instance.source_table
    if not _exists(commands.connection, "SELECT 1 FROM pg_class WHERE oid = %s", instance.source_object_id):
        raise TableMissing(schema, name)
    if not tracking.is_tracked(commands, instance.source_object_id):
        tracking.track(commands, instance.source_object_id)
    # Until here anybody could alter it; from here on the log tells of that.
    commands.run(
        sql.SQL("LOCK TABLE ONLY {} IN SHARE UPDATE EXCLUSIVE MODE").format(sql.Identifier(schema, name))
    )
    found = next(iter(source_tables(commands.connection, schema, name)), None)
    if found is None or found.source_object_id != instance.source_object_id:
        raise TableMissing(schema, name)
    if (name_unread := unreadable_name(found)) is not None:
        raise NameNotUtf8(f"{schema}.{name}", name_unread)
    if found.shape != instance.source_columns:
        raise TableNotMarked(f"{schema}.{name}", "LOCK TABLE", "", "It was altered meanwhile: try again.")
    _refuse_virtual_columns(commands, instance)
    _refuse_tracked_parts(commands, instance)
    tracking.guard_index(commands, instance)
    tracking.fix_partitions(commands, instance)
    _write_word(commands, enabled_json(instance))


def _refuse_virtual_columns(commands: Commands, instance: CaptureInstance) -> None:
    """A table that logs whole old rows can't be updated when it has generated columns that are not stored."""
    row = commands.run(
        "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute"
        " WHERE attrelid = %s AND attgenerated = 'v' AND NOT attisdropped",
        [instance.source_object_id],
    ).fetchone()
    if row is not None and row[0] is not None:
        table = f"{instance.source_schema}.{instance.source_table}"
        words = (
            f"PostgreSQL would refuse updates of the table once it is tracked, because of virtual generated "
            f"columns: {row[0]}. Make them STORED, or drop them."
        )
        raise TableNotMarked(table, "REPLICA IDENTITY FULL", "", words)


def _refuse_tracked_parts(commands: Commands, instance: CaptureInstance) -> None:
    """Rows of a partition that is tracked by itself would be its root's alone."""
    row = commands.run(
        "SELECT string_agg(t.table_id::text, ', ') FROM cdc.tracked_tables t WHERE t.root_id <> %(oid)s::oid"
        " AND t.table_id IN (SELECT relid FROM pg_partition_tree(%(oid)s::oid::regclass))",
        {"oid": instance.source_object_id},
    ).fetchone()
    if row is not None and row[0] is not None:
        table = f"{instance.source_schema}.{instance.source_table}"
        words = f"Partitions of it are tracked by themselves: {row[0]}. Disable them first."
        raise TableNotMarked(table, "ALTER PUBLICATION", "", words)


def _disable(commands: Commands, instance: CaptureInstance, last_of_table: bool) -> None:
    if last_of_table:
        tracking.untrack(commands, instance.source_object_id)
    tracking.release_index(commands, instance)
    tracking.release_partitions(commands, instance)
    _write_word(commands, disabled_json(instance))


def _write_word(commands: Commands, word: str) -> None:
    """Into the log, with our seal where the database's objects are of this version."""
    if objects.is_outdated(commands.connection):
        commands.run("SELECT pg_logical_emit_message(true, %s, %s::text)", [PREFIX, word])
    else:
        commands.run("SELECT cdc.write_word(%s::json)", [word])


def _exists(connection: Connection, query: str, *values: str | int) -> bool:
    return connection.execute(query.encode(), values).fetchone() is not None


def _sign(commands: Commands, owner: str) -> None:
    """Writes below the schema's comment who enabled the database."""
    query = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s"
    row = commands.run(query, [SCHEMA]).fetchone()
    assert row is not None
    comment = sql.Literal(f"{row[0]} {OWNER_COMMENT}{owner}")
    commands.run(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(SCHEMA), comment))


def _has_schema(connection: Connection) -> bool:
    return _exists(connection, "SELECT 1 FROM pg_namespace WHERE nspname = %s", SCHEMA)


def _has_own_schema(connection: Connection) -> bool:
    """Whether the schema ``cdc`` is one that enable_database made, though parts of it may be gone."""
    return _exists(
        connection,
        "SELECT 1 FROM pg_namespace n WHERE n.nspname = %s"
        " AND (obj_description(n.oid, 'pg_namespace') LIKE %s"
        " OR EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = n.oid AND p.proname = %s))",
        SCHEMA,
        f"{SCHEMA_COMMENT}%",
        TRUNCATE_GUARD,
    )


def _has_publication(connection: Connection) -> bool:
    return _exists(connection, "SELECT 1 FROM pg_publication WHERE pubname = %s", PUBLICATION)


def _ownership(connection: Connection, instance: CaptureInstance) -> str:
    """What to grant so that this role may mark the table."""
    row = connection.execute(
        "SELECT pg_get_userbyid(relowner)::text, current_user::text FROM pg_class WHERE oid = %s",
        [instance.source_object_id],
    ).fetchone()
    if row is None:
        return "Ask a superuser."
    owner, role = (sql.Identifier(name).as_string(connection) for name in row)
    return f"Only the table's owner may do this: GRANT {owner} TO {role};"
