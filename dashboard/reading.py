"""Reading change rows through the engine, inside a background `Operation`.

Filters and order are Spark expressions on the DataFrame the engine returns; nothing here imports Spark.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import pyarrow as pa

from dashboard.changes import COMMIT_TIME, Change, Place, fold, page_of
from dashboard.downloads import Rows
from dashboard.operations import Operation as Work
from dashboard.ranges import End
from engine.engine import Engine
from engine.model.capture_instance import CapturedColumn, CaptureInstance
from engine.model.change import OPERATION, SEQVAL, START_LSN, UPDATE_MASK, Operation
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanSession

PAGE = 200
LATEST = 12
AT_ONCE = 1000
"""Rows read straight from the files of a table for a page, at most."""
WHOLE_AT_ONCE = 50_000
"""Rows of a whole result that are held in memory; more of them pass through it part by part."""
_INSTANCE, _VALUES = "capture_instance", "captured_values"


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """What of a result is shown. Empty fields filter nothing; ``key`` is ``value`` or ``column=value``."""

    operations: tuple[Operation, ...] = ()
    column: str = ""
    key: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.operations or self.column or self.key or self.text)


@dataclass(frozen=True, slots=True)
class ChangeQuery:
    """One question to a capture instance; ``last`` keeps only the newest so many rows."""

    instance: CaptureInstance
    net: bool
    row_filter_option: str
    start: End
    end: End
    last: int | None
    filter: ChangeFilter

    @property
    def database(self) -> str:
        """The database that is asked."""
        return self.instance.database


@dataclass(frozen=True, slots=True)
class ChangePage:
    """One page of a result, newest first, and the LSNs the query ran with."""

    changes: tuple[Change, ...]
    from_lsn: Lsn
    to_lsn: Lsn
    number: int
    has_more: bool


def resolve(engine: Engine, query: ChangeQuery) -> tuple[Lsn, Lsn]:
    """The LSNs of a query's range: times mapped as for (t1, t2], open ends from the validity interval."""
    start = _lsn(engine, query.database, query.start, "smallest greater than or equal")
    end = _lsn(engine, query.database, query.end, "largest less than or equal")
    low = engine.get_min_lsn(query.database, query.instance.capture_instance)
    high = engine.get_max_lsn(query.database)
    return start or low, end or high or low


def _lsn(engine: Engine, database: str, end: End, operator: str) -> Lsn | None:
    if isinstance(end, datetime):
        return engine.map_time_to_lsn(database, operator, end)
    return end


def result(engine: Engine, query: ChangeQuery, from_lsn: Lsn, to_lsn: Lsn) -> Any:
    """The DataFrame of the query function, filtered; in the function's own columns."""
    read = engine.get_net_changes if query.net else engine.get_all_changes
    frame = read(query.database, query.instance.capture_instance, from_lsn, to_lsn, query.row_filter_option)
    for condition in conditions(query):
        frame = frame.filter(condition)
    return _newest_first(frame, query.net).limit(query.last) if query.last else frame


def conditions(query: ChangeQuery) -> Iterable[str]:
    """The filter as Spark SQL conditions, each safe for any value."""
    chosen, instance = query.filter, query.instance
    if chosen.operations:
        yield f"`{OPERATION}` IN ({', '.join(str(int(operation)) for operation in chosen.operations)})"
    if chosen.column in instance.column_names:
        ordinal = instance.column_names.index(chosen.column) + 1
        yield f"`{OPERATION}` IN (3, 4) AND {bit_set(ordinal)}"
    if chosen.key:
        yield key_condition(chosen.key, instance)
    if chosen.text:
        texts = ", ".join(f"CAST({name(column)} AS STRING)" for column in _text_columns(instance))
        yield f"contains(lower(concat_ws(char(10), {texts})), lower({literal(chosen.text)}))"


def bit_set(ordinal: int) -> str:
    """The condition that the mask has this 1-based bit: ordinal 1 is the lowest bit of the last byte."""
    byte, bit = divmod(ordinal - 1, 8)
    octet = f"hex(substring(`{UPDATE_MASK}`, length(`{UPDATE_MASK}`) - {byte}, 1))"
    return f"(CAST(conv({octet}, 16, 10) AS INT) & {1 << bit}) != 0"


def key_condition(key: str, instance: CaptureInstance) -> str:
    """The condition that a row has this key: ``value``, or ``column=value`` with commas between."""
    parts = [part.partition("=") for part in key.split(",")]
    named = [(column.strip(), value.strip()) for column, sign, value in parts if sign]
    if named and all(column in instance.column_names for column, _ in named):
        return " AND ".join(f"CAST({name(column)} AS STRING) = {literal(value)}" for column, value in named)
    columns = instance.index_column_names or instance.column_names
    return " OR ".join(f"CAST({name(column)} AS STRING) = {literal(key.strip())}" for column in columns)


def _text_columns(instance: CaptureInstance) -> list[str]:
    return [c.column_name for c in instance.columns if not c.lake_type.startswith(("array", "binary"))]


def name(column: str) -> str:
    """A column name in Spark SQL."""
    return "`" + column.replace("`", "``") + "`"


def literal(value: str) -> str:
    """A string literal in Spark SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _newest_first(frame: Any, net: bool) -> Any:
    order = [START_LSN, OPERATION] if net else [START_LSN, SEQVAL, OPERATION]
    return frame.orderBy(*order, ascending=[False] * len(order))


def read_page(
    engine: Engine, query: ChangeQuery, number: int, work: Work, wanted: Place | None = None
) -> ChangePage:
    """Page ``number`` (from 0), newest first, with commit times; the one that has ``wanted``, if given."""
    work.step("finding the range")
    from_lsn, to_lsn = resolve(engine, query)
    work.step("reading changes")
    if wanted is not None:
        number = _page_of(engine, query, from_lsn, to_lsn, wanted, work)
    if (newest := _from_files(engine, query, from_lsn, to_lsn, (number + 1) * PAGE + 1)) is not None:
        shown = newest[number * PAGE :]
        changes = fold(page_of(shown, PAGE), query.instance.capture_instance, query.instance.column_names)
        return ChangePage(tuple(changes), from_lsn, to_lsn, number, len(shown) > PAGE)
    frame = _newest_first(result(engine, query, from_lsn, to_lsn), query.net)
    rows = work.rows(frame.offset(number * PAGE).limit(PAGE + 1))
    shown = page_of(rows, PAGE)
    _add_commit_times(engine, query.database, shown, work)
    changes = fold(shown, query.instance.capture_instance, query.instance.column_names)
    return ChangePage(tuple(changes), from_lsn, to_lsn, number, len(rows) > PAGE)


def _page_of(
    engine: Engine, query: ChangeQuery, from_lsn: Lsn, to_lsn: Lsn, wanted: Place, work: Work
) -> int:
    """The number of the page that has the change, if the result has it at all."""
    newest = _from_files(engine, query, from_lsn, to_lsn, AT_ONCE)
    if newest is not None and (len(newest) < AT_ONCE or _place(newest[-1])[:2] <= wanted):
        newer = sum(_place(row)[:2] > wanted for row in newest)
    else:
        start, seqval = map(literal, wanted)
        later = f"`{START_LSN}` = {start} AND `{SEQVAL}` > {seqval}"
        condition = f"`{START_LSN}` > {start}" + ("" if query.net else f" OR {later}")
        newer = work.count(result(engine, query, from_lsn, to_lsn).filter(condition))
    last = newer if query.last is None else min(newer, query.last - 1)
    return last // PAGE


def _from_files(
    engine: Engine, query: ChangeQuery, from_lsn: Lsn, to_lsn: Lsn, count: int
) -> list[dict[str, Any]] | None:
    """The newest ``count`` rows of an unfiltered query, without Spark; None where only Spark can tell."""
    if count > AT_ONCE:
        return None
    table = _table_from_files(engine, query, from_lsn, to_lsn, count * 2)  # half may be rows 3
    if table is None:
        return None
    without = Operation.UPDATE_OLD if query.row_filter_option == "all" else None
    rows = [row for row in _newest_rows(table) if row[OPERATION] != without]
    return rows[: min(count, query.last or count)]


def _table_from_files(
    engine: Engine, query: ChangeQuery, from_lsn: Lsn, to_lsn: Lsn, count: int
) -> Any | None:
    """As `Engine.newest_changes`, of one instance; None for what only Spark can tell, errors included."""
    instance, high = query.instance, engine.get_max_lsn(query.database)
    if query.net or query.filter or instance.start_lsn is None or high is None:
        return None
    if not instance.start_lsn <= from_lsn or not to_lsn <= high:
        return None
    name_ = instance.capture_instance
    tables = engine.newest_changes(query.database, count, name_, since=from_lsn, upto=to_lsn)
    return None if tables is None else tables.get(name_)


def whole(engine: Engine, query: ChangeQuery, from_lsn: Lsn, to_lsn: Lsn, work: Work) -> Rows:
    """The whole result, however large, in the function's columns and, but for ``last``, its order."""
    columns = [START_LSN, SEQVAL, OPERATION, UPDATE_MASK, *query.instance.column_names]
    if query.row_filter_option == "all update old":
        table = _table_from_files(engine, query, from_lsn, to_lsn, query.last or WHOLE_AT_ONCE)
        if table is not None and query.last:
            table = table.slice(max(0, table.num_rows - query.last))
        if table is not None and (query.last or table.num_rows < WHOLE_AT_ONCE):
            table = table.select(columns)
            return table.schema, (part for part in [table])
    stream = engine.row_stream(result(engine, query, from_lsn, to_lsn))
    return stream.schema, _interruptible(engine, stream.parts, work)


def _interruptible(engine: Engine, parts: Generator[pa.Table], work: Work) -> Generator[pa.Table]:
    with closing(parts), work.watching(engine.spark_session()):
        yield from parts


def count(engine: Engine, query: ChangeQuery, work: Work) -> int:
    """How many rows the whole query returns."""
    from_lsn, to_lsn = resolve(engine, query)
    return work.count(result(engine, query, from_lsn, to_lsn))


def _add_commit_times(engine: Engine, database: str, rows: Sequence[dict[str, Any]], work: Work) -> None:
    commits = {str(row[START_LSN]) for row in rows}
    if not commits:
        return
    mapping = engine.lsn_time_mapping(database)
    condition = f"start_lsn IN ({', '.join(literal(commit) for commit in sorted(commits))})"
    times = {row["start_lsn"]: _utc(row["tran_end_time"]) for row in work.rows(mapping.filter(condition))}
    for row in rows:
        row[COMMIT_TIME] = times.get(str(row[START_LSN]))


def _utc(value: datetime | None) -> datetime | None:
    if value is None:
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def read_latest(
    engine: Engine,
    instances: Sequence[CaptureInstance],
    sessions: Sequence[ScanSession],
    high: Lsn,
    work: Work,
) -> tuple[Change, ...]:
    """The newest changes over all instances; by Spark only where the lake's files can't be read from here."""
    database = instances[0].database
    tables = engine.newest_changes(database, LATEST * 2)
    if tables is None:
        instances = readable(engine, instances)
        since = recent_start(sessions, LATEST * 2)
        return _across(engine, instances, since, high, LATEST * 2, work)[:LATEST]
    return _of_all(instances, tables, LATEST * 2)[:LATEST]


def _of_all(instances: Sequence[CaptureInstance], tables: Mapping[str, Any], each: int) -> tuple[Change, ...]:
    """Changes of several instances, at most ``each`` rows of one, newest first."""
    changes: list[Change] = []
    for instance in instances:
        if instance.capture_instance in tables:
            rows = _newest_rows(tables[instance.capture_instance])[:each]
            changes += fold(rows, instance.capture_instance, instance.column_names)
    changes.sort(key=lambda change: (change.start_lsn, change.seqval or ""), reverse=True)
    return tuple(changes)


def _newest_rows(table: Any) -> list[dict[str, Any]]:
    """Rows of `Engine.newest_changes`, newest first, with their commit times."""
    rows: list[dict[str, Any]] = sorted(table.to_pylist(), key=_place, reverse=True)
    for row in rows:
        row[COMMIT_TIME] = _utc(row.get("tran_end_time"))
    return rows


def _place(row: dict[str, Any]) -> tuple[str, str, int]:
    return str(row[START_LSN]), str(row[SEQVAL]), int(row[OPERATION])


@dataclass(frozen=True, slots=True)
class Transaction:
    """What a transaction changed, over all instances, in engine order.

    changes: its last AT_ONCE at most. counts: of all its changes by capture instance, where there are more.
    """

    changes: tuple[Change, ...]
    counts: Mapping[str, int]


def read_transaction(
    engine: Engine, instances: Sequence[CaptureInstance], commit: Lsn, work: Work
) -> Transaction:
    """Everything one transaction changed."""
    work.step("reading the transaction")
    instances = readable(engine, instances)
    tables = engine.newest_changes(instances[0].database, 2 * AT_ONCE + 2, since=commit, upto=commit)
    if tables is not None:
        changes = _of_all(instances, tables, 2 * AT_ONCE + 2)
    else:
        changes = _across(engine, instances, commit, commit, 2 * AT_ONCE + 2, work)
    counts = {} if len(changes) <= AT_ONCE else _counts(engine, instances, commit, work)
    return Transaction(changes[:AT_ONCE][::-1], counts)


def _counts(engine: Engine, instances: Sequence[CaptureInstance], commit: Lsn, work: Work) -> dict[str, int]:
    """Changes of a transaction by capture instance, in one Spark job; an update counts once."""
    work.step("counting its changes")
    frames = [
        engine.get_all_changes(each.database, each.capture_instance, commit, commit, "all").selectExpr(
            f"{literal(each.capture_instance)} AS {_INSTANCE}"
        )
        for each in instances
        if each.start_lsn is not None and each.start_lsn <= commit
    ]
    counted = reduce(lambda one, other: one.union(other), frames).groupBy(_INSTANCE).count()
    return {str(row[_INSTANCE]): int(row["count"]) for row in work.rows(counted)}


@dataclass(frozen=True, slots=True)
class RowHistory:
    """What the validity interval has of one row, newest first; ``has_more`` than the PAGE rows read."""

    changes: tuple[Change, ...]
    has_more: bool


def read_row(engine: Engine, instance: CaptureInstance, key: Mapping[str, object], work: Work) -> RowHistory:
    """All that the validity interval has of one row, as far as a page shows.

    key: its values of the columns that identify rows, as a change has them.
    """
    database, name_ = instance.database, instance.capture_instance
    work.step("reading the row's changes")
    table = engine.row_history(database, name_, key, PAGE + 1, check=work.check)
    rows: list[dict[str, Any]] = page_of(table.to_pylist(), PAGE)
    times = engine.map_lsns_to_times(database, {Lsn.parse(row[START_LSN]) for row in rows})
    for row in rows:
        row[COMMIT_TIME] = _utc(times.get(Lsn.parse(row[START_LSN])))
    changes = tuple(fold(rows, name_, instance.column_names))
    return RowHistory(changes, table.num_rows > PAGE)


def readable(engine: Engine, instances: Sequence[CaptureInstance]) -> list[CaptureInstance]:
    """Those whose changes the engine's user may read."""
    names = {each.capture_instance for each in engine.help_change_data_capture(instances[0].database)}
    return [instance for instance in instances if instance.capture_instance in names]


def recent_start(sessions: Sequence[ScanSession], wanted: int) -> Lsn | None:
    """The LSN since which the newest sessions captured ``wanted`` commands; None when they don't say."""
    found = 0
    for session in sorted(sessions, key=lambda s: s.start_time, reverse=True):
        if session.session_id == 0 or not session.command_count:
            continue
        found += session.command_count
        if found >= wanted:
            first = Lsn.parse(session.first_begin_cdc_lsn)
            return min(first, Lsn.parse(session.last_commit_cdc_lsn))
    return None


def _across(
    engine: Engine, instances: Sequence[CaptureInstance], start: Lsn | None, end: Lsn, limit: int, work: Work
) -> tuple[Change, ...]:
    """Changes of several instances in one Spark job; values come as text, since their columns differ."""
    frames = [
        _as_texts(engine, instance, max(instance.start_lsn, start or instance.start_lsn), end)
        for instance in instances
        if instance.start_lsn is not None and instance.start_lsn <= end
    ]
    if not frames:
        return ()
    newest = _newest_first(reduce(lambda one, other: one.union(other), frames), net=False)
    rows = page_of(work.rows(newest.limit(limit + 1)), limit)
    _add_commit_times(engine, instances[0].database, rows, work)
    changes: list[Change] = []
    for instance in instances:
        mine = [row | json.loads(row[_VALUES]) for row in rows if row[_INSTANCE] == instance.capture_instance]
        changes += fold(mine, instance.capture_instance, instance.column_names)
    changes.sort(key=lambda change: (change.start_lsn, change.seqval or ""), reverse=True)
    return tuple(changes)


def _as_texts(engine: Engine, instance: CaptureInstance, from_lsn: Lsn, to_lsn: Lsn) -> Any:
    frame = engine.get_all_changes(
        instance.database, instance.capture_instance, from_lsn, to_lsn, "all update old"
    )
    texts = ", ".join(f"{_text_of(column)} AS {name(column.column_name)}" for column in instance.columns)
    metadata = [name(column) for column in (START_LSN, SEQVAL, OPERATION, UPDATE_MASK)]
    return frame.selectExpr(
        f"{literal(instance.capture_instance)} AS {_INSTANCE}",
        *metadata,
        f"to_json(struct({texts})) AS {_VALUES}",
    )


def _text_of(column: CapturedColumn) -> str:
    """A column as the text that `format.cell` would make of it."""
    quoted = name(column.column_name)
    if column.lake_type == "binary":
        return f"concat('0x', hex({quoted}))"
    return f"CAST({quoted} AS STRING)"


def count_by_operation(engine: Engine, instance: CaptureInstance, work: Work) -> dict[Operation, int]:
    """Rows of the whole validity interval for each operation code."""
    work.step("counting rows")
    low = engine.get_min_lsn(instance.database, instance.capture_instance)
    high = engine.get_max_lsn(instance.database)
    frame = engine.get_all_changes(instance.database, instance.capture_instance, low, high, "all update old")
    rows = work.rows(frame.groupBy(OPERATION).count())
    return {Operation(row[OPERATION]): int(row["count"]) for row in rows}
