"""What the enable wizard knows: which tables can be captured, with what defaults, and running the lot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.operations import Operation
from dashboard.snapshot import Snapshot
from dashboard.statements import EnableTable
from engine.engine import Engine
from engine.errors import CdcError
from engine.model.capture_instance import CaptureInstance
from engine.sources.base import SourceIndex, SourceTable

RESERVED = frozenset({"__$start_lsn", "__$end_lsn", "__$seqval", "__$operation", "__$update_mask"})
MAX_INSTANCES = 2
MAX_NAME = 100


@dataclass(frozen=True, slots=True)
class Choice:
    """One table as chosen in the wizard; ``index_name`` None means the primary key."""

    capture_instance: str
    columns: tuple[str, ...]
    net: bool
    index_name: str | None = None
    role_name: str | None = None

    def statement(self, table: SourceTable) -> EnableTable:
        """The procedure's arguments; what equals its default is left out."""
        everything = tuple(column.name for column in table.columns)
        named = self.capture_instance != f"{table.schema}_{table.name}"
        by_default = table.primary_key is not None or self.index_name is not None
        return EnableTable(
            source_schema=table.schema,
            source_name=table.name,
            capture_instance=self.capture_instance if named else None,
            supports_net_changes=None if self.net == by_default else self.net,
            role_name=self.role_name,
            index_name=self.index_name,
            captured_columns=None if self.columns == everything else self.columns,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What enabling one table came to; ``error`` None when it worked; ``notes`` are no failures."""

    table: str
    error: str | None
    notes: tuple[str, ...] = ()


def net_indexes(table: SourceTable) -> list[SourceIndex]:
    """Indexes that may identify rows: the primary key first, then unique ones without NULLs."""
    nullable = {column.name for column in table.columns if column.nullable}
    fit = [
        index
        for index in table.indexes
        if index.is_valid
        and (index.is_primary_key or (index.is_unique and not nullable & set(index.columns)))
    ]
    return sorted(fit, key=lambda index: (not index.is_primary_key, index.name))


def impossible(table: SourceTable, instances: Sequence[CaptureInstance]) -> str:
    """Why a table can't be enabled now; empty when it can."""
    mine = [i for i in instances if (i.source_schema, i.source_table) == (table.schema, table.name)]
    if len(mine) >= MAX_INSTANCES:
        return f"has {MAX_INSTANCES} capture instances already: {', '.join(i.capture_instance for i in mine)}"
    if mine:
        return f"is captured as {mine[0].capture_instance}"
    if table.schema == "cdc":
        return "belongs to CDC itself"
    reserved = [column.name for column in table.columns if column.name in RESERVED]
    if reserved and len(reserved) == len(table.columns):
        return f"has only reserved column names: {', '.join(reserved)}"
    return "" if table.columns else "has no columns"


def default_choice(table: SourceTable) -> Choice:
    """As the procedure's defaults: all columns, net changes where a primary key is there."""
    columns = tuple(column.name for column in table.columns if column.name not in RESERVED)
    return Choice(f"{table.schema}_{table.name}", columns, table.primary_key is not None)


def name_problem(capture_instance: str, database: str, snapshot: Snapshot) -> str:
    """Why the name can't be used; empty when it can."""
    if not capture_instance:
        return "the capture instance needs a name"
    if len(capture_instance) > MAX_NAME:
        return f"the name is longer than {MAX_NAME} characters"
    view = snapshot.database(database)
    if view is not None and view.instance(capture_instance) is not None:
        return f"a capture instance '{capture_instance}' exists already"
    return ""


def enable_all(
    engine: Engine, database: str, tables: Sequence[EnableTable], with_database: bool, work: Operation
) -> list[Outcome]:
    """Enables the database where that is asked, then each table; one refused table stops no other."""
    if with_database:
        work.step(f"enabling database {database}")
        engine.enable_db(database)
    outcomes = []
    for number, table in enumerate(tables, 1):
        name = f"{table.source_schema}.{table.source_name}"
        work.step(f"enabling {name} ({number} of {len(tables)})")
        outcomes.append(_enable(engine, database, table, name))
    return outcomes


def _enable(engine: Engine, database: str, table: EnableTable, name: str) -> Outcome:
    notes: list[str] = []
    try:
        engine.enable_table(
            database,
            table.source_schema,
            table.source_name,
            role_name=table.role_name,
            capture_instance=table.capture_instance,
            supports_net_changes=table.supports_net_changes,
            index_name=table.index_name,
            captured_column_list=table.captured_column_list,
            allow_partition_switch=table.allow_partition_switch,
            on_message=lambda message: notes.append(message.line()),
        )
    except CdcError as error:
        return Outcome(name, error.line())
    return Outcome(name, None, tuple(notes))
