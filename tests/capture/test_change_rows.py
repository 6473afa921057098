import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from engine.capture.change_rows import Captured, change_rows
from engine.model.table_shape import ShapeColumn
from tests.capture.pieces import Change, instance, naive_rows, piece

COLUMNS = {"id": "int", "name": "string", "score": "double", "tags": "array<int>"}

values = st.fixed_dictionaries(
    {
        "id": st.integers(1, 3),
        "name": st.sampled_from([None, "", "a", "ä😀"]),
        "score": st.sampled_from([None, 0.0, -0.0, 1.5, math.nan, math.inf]),
        "tags": st.sampled_from([None, [], [1], [1, None]]),
    }
)


@st.composite
def logs(draw):
    commits = draw(st.lists(st.integers(1000, 9000), min_size=1, max_size=4, unique=True).map(sorted))
    changes = []
    for transaction in range(len(commits)):
        for command in range(1, draw(st.integers(1, 5)) + 1):
            old, new = draw(
                st.tuples(st.none() | values, st.none() | values).filter(lambda pair: pair != (None, None))
            )
            changes.append(Change(transaction, command, old, new))
    return commits, changes


def rows_of(built):
    return [] if built is None else [tuple(row.values()) for row in built.rows.to_pylist()]


@given(
    logs(),
    st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4, unique=True),
    st.booleans(),
    st.integers(0, 9500),
)
def test_rows_are_those_of_the_naive_model(log, captured, keyed, after):
    commits, changes = log
    names = sorted({*captured, "id"}) if keyed else captured
    of = instance({name: COLUMNS[name] for name in names}, ["id"] if keyed else [])
    built = change_rows(piece(commits, changes, COLUMNS), Captured(of, after))
    assert repr(rows_of(built)) == repr(naive_rows(commits, changes, of, after))


@given(logs())
def test_positions_ascend_and_say_what_the_rows_say(log):
    commits, changes = log
    built = change_rows(piece(commits, changes, COLUMNS), Captured(instance(COLUMNS), 0))
    if built is None:
        return
    assert built.rows.column("__$command_id").to_pylist() == built.commands.tolist()
    pairs = list(zip(built.commits.tolist(), built.commands.tolist(), strict=True))
    assert pairs == sorted(pairs)
    assert built.command_count == len({*pairs})


def test_an_update_of_a_column_that_is_not_captured_writes_nothing():
    changes = [Change(0, 1, {"id": 1, "name": "a"}, {"id": 1, "name": "b"})]
    log = piece([1000], changes, {"id": "int", "name": "string"})
    assert change_rows(log, Captured(instance({"id": "int"}), 0)) is None


def test_a_captured_column_that_was_dropped_is_null():
    log = piece([1000], [Change(0, 1, None, {"id": 1})], {"id": "int"})
    built = change_rows(log, Captured(instance({"id": "int", "gone": "string"}), 0))
    assert built.rows.column("gone").to_pylist() == [None]
    assert built.rows.column("__$update_mask").to_pylist() == [b"\x03"]


def test_a_column_is_found_by_what_the_source_calls_it_now():
    log = piece([1000], [Change(0, 1, None, {"first": 1, "second": 2})], {"first": "int", "second": "int"})
    shape = (ShapeColumn(1, "second", "a type", "int"), ShapeColumn(2, "first", "a type", "int"))
    swapped = replace(instance({"first": "int", "second": "int"}), source_columns=shape)
    built = change_rows(log, Captured(swapped, 0))
    assert (built.rows["first"].to_pylist(), built.rows["second"].to_pylist()) == ([2], [1])


def test_other_tables_are_not_captured():
    log = piece([1000], [Change(0, 1, None, {"id": 1})], {"id": "int"})
    other = replace(instance({"id": "int"}), source_object_id=1)
    assert change_rows(log, Captured(other, 0)) is None


def test_masks_of_many_columns_have_the_width_of_the_column_count():
    columns = {f"c{number}": "int" for number in range(1, 20)}
    old = dict.fromkeys(columns, 1)
    built = change_rows(
        piece([1000], [Change(0, 1, old, {**old, "c1": 2, "c17": 2})], columns),
        Captured(instance(columns), 0),
    )
    assert built.rows.column("__$update_mask").to_pylist() == [b"\x01\x00\x01"] * 2
