"""Cutting pieces at DDL: nothing is lost or moved, and rows meet the shape of their own time."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.capture.alterations import altered, sections, with_derived
from engine.errors import DdlNotProcessed
from engine.model.table_shape import ShapeColumn
from engine.sources.base import LogPiece, TableAltered, TableDropped
from tests.capture.pieces import SOURCE, Change, instance, piece

COLUMNS = {"id": "int"}
SHAPE = (ShapeColumn(1, "id", "a type", "int"),)


def places(log: LogPiece) -> list[tuple[int, int, int]]:
    """(commit, command, operation) of each row, in the order of the piece."""
    commits = [transaction.commit_lsn.position for transaction in log.transactions]
    return [
        (commits[number], command, operation)
        for changes in log.changes
        for number, command, operation in zip(
            changes.transaction.tolist(), changes.command.tolist(), changes.operation.tolist(), strict=True
        )
    ]


@st.composite
def logs(draw: st.DrawFn) -> LogPiece:
    """Some transactions of one table with DDL anywhere."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    changes = [
        Change(number, command, draw(st.sampled_from([None, {"id": command}])), {"id": command + 1})
        for number, size in enumerate(sizes)
        for command in range(1, size + 1)
    ]
    ddl = sorted(
        (number, draw(st.integers(0, size)))
        for number, size in enumerate(sizes)
        for _ in range(draw(st.integers(0, 2)))
    )
    events = tuple(
        TableAltered(*place, SOURCE, "dbo", "t", SHAPE, str(number)) for number, place in enumerate(ddl)
    )
    commits = [1000 * (number + 1) for number in range(len(sizes))]
    return replace(piece(commits, changes, COLUMNS), events=events, open_tail=draw(st.booleans()))


@given(logs())
def test_sections_are_the_piece_cut_at_each_alteration(log: LogPiece) -> None:
    cut = list(sections(log))
    assert [row for part in cut for row in places(part)] == places(log)
    assert [event.ddl for part in cut for event in part.events] == [event.ddl for event in log.events]
    for part in cut:
        assert all(event.transaction == 0 for event in part.events)
        first = part.events[-1] if part.events else None
        for changes in part.changes if first else ():
            own = changes.command[changes.transaction == 0]
            assert (own > first.command).all()


@given(logs())
def test_transactions_go_on_from_section_to_section(log: LogPiece) -> None:
    cut = list(sections(log))
    for part, following in itertools.pairwise(cut):
        same = part.transactions[-1].commit_lsn == following.transactions[0].commit_lsn
        assert part.open_tail == same
    assert cut[-1].open_tail == log.open_tail
    ended = [
        transaction.commit_lsn
        for part in cut
        for transaction in list(part.transactions)[: len(part.transactions) - part.open_tail]
    ]
    whole = list(log.transactions)[: len(log.transactions) - log.open_tail]
    assert ended == [transaction.commit_lsn for transaction in whole]


def test_other_events_stay_where_they_are() -> None:
    dropped = TableDropped(0, 1, 1, "")
    log = replace(
        piece([1000], [Change(0, 1, None, {"id": 1}), Change(0, 2, None, {"id": 2})], COLUMNS),
        events=(dropped, TableAltered(0, 1, SOURCE, "dbo", "t", SHAPE, "")),
    )
    first, second = sections(log)
    assert (first.events, len(second.events)) == ((dropped,), 1)


def test_columns_keep_name_and_place_and_follow_the_type() -> None:
    before = instance({"id": "int", "gone": "string"})
    event = TableAltered(0, 0, SOURCE, "other", "u", (ShapeColumn(1, "key", "bigint", "bigint"),), "")
    after = altered(before, event)
    assert after.column_names == ("id", "gone")
    assert [column.lake_type for column in after.columns] == ["bigint", "string"]
    assert after.source_names() == ("key", None)
    assert (after.source_schema, after.source_table) == ("other", "u")


def known(columns: dict[str, str], **options: object):
    of = instance(columns)
    shape = tuple(ShapeColumn(c.column_id, c.column_name, c.column_type, c.lake_type) for c in of.columns)
    return replace(of, source_columns=shape, **options)


def test_a_shape_as_it_was_derives_nothing() -> None:
    log = piece([1000], [Change(0, 1, None, {"id": 1})], COLUMNS)
    assert with_derived(log, [known(COLUMNS)], lambda _: {}) is log


def test_an_announced_shape_derives_nothing() -> None:
    log = piece([1000], [Change(0, 1, None, {"key": 1})], {"key": "int"})
    told = TableAltered(0, 0, SOURCE, "dbo", "t", (ShapeColumn(1, "key", "a type", "int"),), "text")
    log = replace(log, events=(told,))
    assert with_derived(log, [known(COLUMNS)], lambda _: {}).events == (told,)


def test_an_unannounced_shape_comes_before_its_first_row() -> None:
    log = piece([1000, 2000], [Change(1, 3, None, {"key": 1})], {"key": "int"})
    (event,) = with_derived(log, [known(COLUMNS)], lambda _: {"key": 1}).events
    assert (event.transaction, event.command, event.ddl) == (1, 2, "")
    assert event.columns == (ShapeColumn(1, "key", "a type", "int"),)


def test_a_column_that_may_be_two_stops() -> None:
    log = piece([1000], [Change(0, 1, None, {"key": 1})], {"key": "int"})
    with pytest.raises(DdlNotProcessed, match="'key'"):
        with_derived(log, [known(COLUMNS)], lambda _: {"again": 1})


def test_a_new_column_that_is_gone_again_is_nobodys() -> None:
    log = piece([1000], [Change(0, 1, None, {"id": 1, "extra": 2})], {"id": "int", "extra": "int"})
    (event,) = with_derived(log, [known(COLUMNS)], lambda _: {"id": 1}).events
    assert [column.column_id for column in event.columns] == [1, -2]
