"""DDL in log order: a piece is cut where a table's shape changes, so that its rows never meet another's.

Pure: pieces in, pieces out. A source that tells of DDL in its log does so by TableAltered; where it
does not (its role may not create event triggers), the shape of the rows themselves gives it away.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.errors import DdlNotProcessed
from engine.model.capture_instance import CapturedColumn, CaptureInstance
from engine.model.table_shape import ShapeColumn
from engine.sources.base import (
    ColumnNumbers,
    InstanceEnabled,
    LogEvent,
    LogPiece,
    LogTransactions,
    Relation,
    RelationChanges,
    TableAltered,
)

ColumnIds = Callable[[int], ColumnNumbers]
"""A table's columns as the source has them now (`LogSource.column_ids`)."""


def sections(piece: LogPiece) -> Iterator[LogPiece]:
    """The piece cut before each TableAltered: parts as if the log had been read in those pieces."""
    rest = piece
    while True:
        cut = next((event for event in rest.events[_begins(rest) :] if isinstance(event, TableAltered)), None)
        if cut is None:
            yield rest
            return
        first, rest = _cut(rest, cut)
        if first is not None:
            yield first


def _begins(piece: LogPiece) -> int:
    """1 when the piece is what a cut left: its first event is the one it was cut at."""
    first = piece.events[0] if piece.events else None
    at_start = isinstance(first, TableAltered) and first.transaction == 0
    return int(at_start and not any(_before(changes, first).any() for changes in piece.changes))


def _before(changes: RelationChanges, event: LogEvent | None) -> NDArray[np.bool_]:
    """Which of the changes come before the event."""
    assert event is not None
    same = changes.transaction == event.transaction
    before: NDArray[np.bool_] = (changes.transaction < event.transaction) | (
        same & (changes.command <= event.command)
    )
    return before


def _cut(piece: LogPiece, event: LogEvent) -> tuple[LogPiece | None, LogPiece]:
    """What comes before ``event``, None when that is nothing, and the rest."""
    place = piece.events.index(event)
    earlier = piece.events[:place]
    before = [_before(changes, event) for changes in piece.changes]
    number = event.transaction
    inside = any(each.transaction == number for each in earlier) or any(
        bool((changes.transaction[taken] == number).any())
        for changes, taken in zip(piece.changes, before, strict=True)
    )
    transactions = LogTransactions.of(piece.transactions)
    first = LogPiece(
        transactions=transactions[: number + inside],
        changes=tuple(_taken(piece.changes, before, 0)),
        events=earlier,
        open_tail=inside,
        record_count=0,
    )
    after = [~taken for taken in before]
    rest = LogPiece(
        transactions=transactions[number:],
        changes=tuple(_taken(piece.changes, after, number)),
        events=tuple(replace(each, transaction=each.transaction - number) for each in piece.events[place:]),
        open_tail=piece.open_tail,
        record_count=piece.record_count,
    )
    return (first if len(first.transactions) else None), rest


def _taken(
    changes: Sequence[RelationChanges], taken: Sequence[NDArray[np.bool_]], shift: int
) -> Iterator[RelationChanges]:
    for one, mask in zip(changes, taken, strict=True):
        if mask.all():
            yield replace(one, transaction=one.transaction - np.int32(shift)) if shift else one
        elif mask.any():
            places = np.flatnonzero(mask)
            yield RelationChanges(
                relation=one.relation,
                operation=one.operation[places],
                transaction=one.transaction[places] - np.int32(shift),
                command=one.command[places],
                position=one.position[places],
                counter=one.counter[places],
                images=one.images.take(places),
                without_old=one.without_old,
            )


def altered(instance: CaptureInstance, event: TableAltered) -> CaptureInstance:
    """The instance after its table was altered: captured columns keep name, id and position.

    The type of one follows the source's (reference/behaviour.md, 6); one that was dropped keeps its type.
    """
    now = {column.column_id: column for column in event.columns}
    return replace(
        instance,
        source_schema=event.schema,
        source_table=event.table,
        source_columns=event.columns,
        columns=tuple(_followed(column, now.get(column.column_id)) for column in instance.columns),
    )


def retypes(event: TableAltered, instance: CaptureInstance) -> bool:
    """Whether a captured column has another type after ``event``; a type that was renamed is the same."""
    now = {column.column_id: column for column in event.columns}
    before = {column.column_id: column for column in instance.source_columns}
    return any(
        not _keeps_type(column, before.get(column.column_id), now[column.column_id])
        for column in instance.columns
        if column.column_id in now
    )


def _keeps_type(column: CapturedColumn, before: ShapeColumn | None, now: ShapeColumn) -> bool:
    if before is None:
        return column.column_type == now.source_type
    return now.is_typed_as(before.source_type, before.lake_type, before.type_id)


def _followed(column: CapturedColumn, now: ShapeColumn | None) -> CapturedColumn:
    if now is None:
        return column
    return replace(column, column_type=now.source_type, lake_type=now.lake_type)


# Where the log does not tell of DDL


def with_derived(
    piece: LogPiece, known: Sequence[CaptureInstance], column_ids: ColumnIds, told: bool
) -> LogPiece:
    """The piece with a TableAltered before the first row of each shape that the log did not announce.

    known: the instances before this piece; those that begin in it bring their shape along, and what came
    before their beginning does not matter. told: whether the source tells of DDL in its log; where it does
    not, a shape that looks as before may be another. Raises DdlNotProcessed when the source can't tell any
    more which column is which.
    """
    derived: list[TableAltered] = []
    enabled = [event for event in piece.events if isinstance(event, InstanceEnabled)]
    begun = [event for event in enabled if event.instance.source_columns]
    tables = {event.instance.source_object_id: (event.instance, _place(event)) for event in reversed(begun)}
    tables |= {one.source_object_id: (one, (-1, 0)) for one in known if one.source_columns}
    for instance, begins in tables.values():
        derived += _derived(piece, instance, begins, column_ids, told)
    if not derived:
        return piece
    events = sorted((*piece.events, *derived), key=_place)
    return replace(piece, events=tuple(events))


def _place(event: LogEvent) -> tuple[int, int]:
    return event.transaction, event.command


def _derived(
    piece: LogPiece, instance: CaptureInstance, begins: tuple[int, int], column_ids: ColumnIds, told: bool
) -> Iterator[TableAltered]:
    """Unannounced shapes of one table from ``begins`` on (transaction, command), in log order."""
    table, name = instance.source_object_id, instance.capture_instance
    words = [one for one in piece.events if isinstance(one, TableAltered) and one.source_object_id == table]
    rows = [
        one
        for one in piece.changes
        if one.relation.source_object_id == table and (one.transaction[-1], one.command[-1]) > begins
    ]
    shape = (instance.source_schema, instance.source_table, instance.source_columns)
    for one in sorted(rows, key=lambda one: (one.transaction[0], one.command[0])):
        place = (int(one.transaction[0]), int(one.command[0]) - 1)
        for event in [event for event in words if _place(event) <= place]:
            shape = (event.schema, event.table, event.columns)
            words.remove(event)
        if _is_described(one.relation, *shape):
            if not told and not words:
                # A column dropped and added again under its name and type looks the same.
                _numbers(one.relation, name, shape[2], column_ids(table), told)
            continue
        columns = _columns(one.relation, name, shape[2], column_ids(table), told)
        relation = one.relation
        shape = (relation.schema, relation.table, columns)
        yield TableAltered(*place, table, relation.schema, relation.table, columns, ddl="")


def _is_described(relation: Relation, schema: str, table: str, columns: tuple[ShapeColumn, ...]) -> bool:
    logged = [column for column in columns if column.is_logged]
    if (schema, table, len(logged)) != (relation.schema, relation.table, len(relation.columns)):
        return False
    return all(
        known.name == found.name and known.is_typed_as(found.source_type, found.lake_type, found.type_id)
        for known, found in zip(logged, relation.columns, strict=True)
    )


def _numbers(
    relation: Relation,
    capture_instance: str,
    before: Sequence[ShapeColumn],
    now: ColumnNumbers,
    told: bool,
) -> tuple[int, ...]:
    """The numbers of the relation's columns, below zero for what was there only in between.

    A source logs columns in the order of their numbers, and one that was there before and is there now was
    there all the time: where this leaves one way to number them, it is known. Raises DdlNotProcessed else.
    """
    known = {column.name: column.column_id for column in before}
    names = [column.name for column in relation.columns]
    lasting = {column.column_id for column in before if column.is_logged} & set(now.names.values())
    places = list(enumerate(names, 1))
    ways: Sequence[tuple[int, ...]] = ()
    if told:
        # Then a name is another column's only after a word of that.
        ways = _ascending([_first_options(name, place, known, now) for place, name in places], lasting)
    if len(ways) != 1:
        ways = _ascending([_options(name, place, known, now) for place, name in places], lasting)
    if len(ways) == 1:
        everything = {*known.values(), *now.names.values(), *now.dropped}
        return tuple(number if number in everything else -place for place, number in enumerate(ways[0], 1))
    doubtful = [name for name in names if name not in known or now.names.get(name) != known[name]]
    raise DdlNotProcessed(
        f"{relation.schema}.{relation.table}", ", ".join((doubtful or names)[:1]), capture_instance
    )


def _first_options(name: str, place: int, known: Mapping[str, int], now: ColumnNumbers) -> Set[int]:
    """As `_options`, of a column that kept its number if it kept its name."""
    return {known[name]} if name in known else _options(name, place, known, now)


def _options(name: str, place: int, known: Mapping[str, int], now: ColumnNumbers) -> Set[int]:
    """Numbers that the column of this name, the relation's ``place``-th, may have had."""
    here = now.names.get(name)
    if here is not None and known.get(name, here) == here:
        return {here}
    if name in known:
        in_between = {number for number in now.dropped if number > max(known.values())}
        return {known[name], *in_between} | ({here} if here is not None else set())
    everything = {*known.values(), *now.names.values(), *now.dropped}
    # Of a table that is gone nobody knows which columns it had in between.
    return everything if now.names else {*everything, max(everything, default=0) + place}


def _ascending(options: Sequence[Set[int]], lasting: Set[int]) -> Sequence[tuple[int, ...]]:
    """Ways to take a number of each set, ascending, that leave out none of ``lasting``: two at most."""
    needed = sorted(lasting)
    ways: dict[int, list[tuple[int, ...]]] = {0: [()]}
    for numbers in options:
        ways = {
            number: reached
            for number in numbers
            if (
                reached := [
                    (*way, number)
                    for last, found in ways.items()
                    if last < number and bisect_right(needed, last) == bisect_left(needed, number)
                    for way in found
                ][:2]
            )
        }
    return [
        way for last, found in ways.items() if bisect_right(needed, last) == len(needed) for way in found
    ][:2]


def _columns(
    relation: Relation,
    capture_instance: str,
    before: Sequence[ShapeColumn],
    now: ColumnNumbers,
    told: bool,
) -> tuple[ShapeColumn, ...]:
    """The relation's columns with their numbers, and those that the log never holds."""
    numbers = _numbers(relation, capture_instance, before, now, told)
    found = [
        ShapeColumn(number, column.name, column.source_type, column.lake_type, type_id=column.type_id)
        for number, column in zip(numbers, relation.columns, strict=True)
    ]
    unlogged = [column for column in before if not column.is_logged and column.column_id not in numbers]
    return (*found, *unlogged)
