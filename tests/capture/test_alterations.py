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
from engine.sources.base import ColumnNumbers, InstanceEnabled, LogPiece, TableAltered, TableDropped
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
    assert with_derived(log, [known(COLUMNS)], lambda _: ColumnNumbers({}), told=True) is log


def test_an_announced_shape_derives_nothing() -> None:
    log = piece([1000], [Change(0, 1, None, {"key": 1})], {"key": "int"})
    told = TableAltered(0, 0, SOURCE, "dbo", "t", (ShapeColumn(1, "key", "a type", "int"),), "text")
    log = replace(log, events=(told,))
    assert with_derived(log, [known(COLUMNS)], lambda _: ColumnNumbers({}), told=True).events == (told,)


def test_an_unannounced_shape_comes_before_its_first_row() -> None:
    log = piece([1000, 2000], [Change(1, 3, None, {"key": 1})], {"key": "int"})
    (event,) = with_derived(log, [known(COLUMNS)], lambda _: ColumnNumbers({"key": 1}), told=True).events
    assert (event.transaction, event.command, event.ddl) == (1, 2, "")
    assert event.columns == (ShapeColumn(1, "key", "a type", "int"),)


def test_a_column_that_may_be_two_stops() -> None:
    log = piece([1000], [Change(0, 1, None, {"key": 1})], {"key": "int"})
    with pytest.raises(DdlNotProcessed, match="'key'"):
        with_derived(log, [known(COLUMNS)], lambda _: ColumnNumbers({"again": 2}, {1}), told=True)


def test_a_new_column_that_is_gone_again_has_its_number() -> None:
    log = piece([1000], [Change(0, 1, None, {"id": 1, "extra": 2})], {"id": "int", "extra": "int"})
    (event,) = with_derived(log, [known(COLUMNS)], lambda _: ColumnNumbers({"id": 1}, {2}), told=True).events
    assert [column.column_id for column in event.columns] == [1, 2]


def test_a_new_column_of_a_table_that_is_gone_is_nobodys() -> None:
    log = piece([1000], [Change(0, 1, None, {"id": 1, "extra": 2})], {"id": "int", "extra": "int"})
    (event,) = with_derived(log, [known(COLUMNS)], lambda _: ColumnNumbers({}), told=True).events
    assert [column.column_id for column in event.columns] == [1, -2]


def test_where_ddl_is_told_a_name_is_its_columns_until_the_word() -> None:
    log = piece([1000], [Change(0, 1, None, {"id": 1, "x": 2})], {"id": "int", "x": "int"})
    now = ColumnNumbers({"x": 2, "id": 3}, {1})
    (event,) = with_derived(log, [known(COLUMNS)], lambda _: now, told=True).events
    assert [column.column_id for column in event.columns] == [1, 2]


def test_rows_before_an_instance_begins_are_not_asked_for_their_shape() -> None:
    changes = [Change(0, 1, None, {"id": 1, "gone": 1}), Change(0, 2, None, {"id": 2, "gone": 2})]
    log = piece([1000, 2000], changes, {"id": "int", "gone": "int"})
    begins = InstanceEnabled(1, 0, known(COLUMNS))
    log = replace(log, events=(begins,))
    assert with_derived(log, [], lambda _: ColumnNumbers({"id": 1}, {2, 3}), told=False) is log
    with pytest.raises(DdlNotProcessed, match="'gone'"):
        with_derived(log, [known(COLUMNS)], lambda _: ColumnNumbers({"id": 1}, {2, 3}), told=False)


# Without being told


ORIGINAL = ("a", "b", "c")


@st.composite
def pasts(draw: st.DrawFn) -> list[dict[int, str]]:
    """What the columns of a table were called after each statement, by number, from the beginning on.

    A name is given again only to a column that takes the place of one that never had another, and then
    keeps it: other tricks nobody can see.
    """
    table = dict(enumerate(ORIGINAL, 1))
    past, fresh, largest = [dict(table)], iter("defghijklm"), len(table)
    renamed: set[int] = set()
    anew: set[int] = set()
    for _ in range(draw(st.integers(0, 4))):
        statement = draw(st.sampled_from(["add", "drop", "rename", "anew", "anew"]))
        number = draw(st.sampled_from(sorted(table)))
        if statement == "rename" and number not in anew:
            table[number] = next(fresh)
            renamed.add(number)
        elif statement == "drop" and len(table) > 1:
            del table[number]
        elif statement == "anew" and number not in renamed:
            largest += 1
            anew.add(largest)
            table[largest] = table.pop(number)
        else:
            largest += 1
            table[largest] = next(fresh)
        past.append(dict(table))
    return past


@given(pasts(), st.data())
def test_untold_ddl_is_followed_or_stops_but_mistakes_no_column(
    past: list[dict[int, str]], data: st.DataObject
) -> None:
    met = data.draw(st.sets(st.integers(0, len(past) - 1), min_size=1))
    rows = [
        piece([1000 * (place + 1)], [Change(0, 1, None, dict.fromkeys(past[place].values(), 1))], columns)
        for place in sorted(met)
        if (columns := {past[place][number]: "int" for number in sorted(past[place])})
    ]
    names = {name: number for number, name in past[-1].items()}
    now = ColumnNumbers(names, {number for table in past for number in table} - set(names.values()))
    before = known(dict.fromkeys(ORIGINAL, "int"))
    for place, log in zip(sorted(met), rows, strict=True):
        try:
            derived = with_derived(log, [before], lambda _: now, told=False)
        except DdlNotProcessed:
            return
        for event in derived.events:
            assert isinstance(event, TableAltered)
            before = altered(before, event)
        assert before.source_names() == tuple(past[place].get(number) for number in (1, 2, 3))


@pytest.mark.parametrize(
    ("relation", "now", "names"),
    [
        ("abc", {"a": 1, "b": 2, "c": 3}, ("a", "b", "c")),
        ("abc", {"a": 1, "b": 2, "c": 4}, None),
        ("abc", {"a": 1, "c": 3, "b": 4}, ("a", "b", "c")),
        ("acb", {"a": 1, "c": 3, "b": 4}, ("a", None, "c")),
        ("abcx", {"a": 1, "b": 2, "x": 4, "c": 5}, ("a", "b", "c")),
        ("ac", {"a": 1, "c": 3}, ("a", None, "c")),
        ("ab", {"a": 1, "b": 3}, ("a", None, "b")),
        ("cba", {"c": 1, "b": 2, "a": 3}, ("c", "b", "a")),
        ("cba", {"a": 1, "b": 2, "c": 3}, None),
        ("abx", {"a": 1, "b": 2, "y": 3}, ("a", "b", "x")),
        ("axc", {"a": 1, "c": 3}, ("a", "x", "c")),
        ("abx", {"a": 1, "b": 2, "y": 4}, None),
    ],
)
def test_columns_are_told_apart_by_their_order_and_by_what_lasts(relation, now, names) -> None:
    columns = dict.fromkeys(relation, "int")
    log = piece([1000], [Change(0, 1, None, dict.fromkeys(relation, 1))], columns)
    before = known(dict.fromkeys(ORIGINAL, "int"))
    there = ColumnNumbers(now, set(range(1, max(now.values()))) - set(now.values()))
    if names is None:
        with pytest.raises(DdlNotProcessed):
            with_derived(log, [before], lambda _: there, told=False)
        return
    for event in with_derived(log, [before], lambda _: there, told=False).events:
        assert isinstance(event, TableAltered)
        before = altered(before, event)
    assert before.source_names() == names
