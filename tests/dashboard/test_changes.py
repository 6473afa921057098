"""Folding the two rows of an update, and decoding its mask."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dashboard.changes import Change, changed_columns, fold, page_of
from engine.model.change import Operation
from engine.model.mask import full_mask, mask_of

COLUMNS = ("ID", "Name", "Rate")


def row(operation: int, seqval: int, mask: bytes | None = None, **values: object) -> dict[str, Any]:
    """A row of the all-changes function; commit LSN and sequence from small numbers."""
    lsn = f"0x{seqval:020X}"
    full = full_mask(len(COLUMNS)) if mask is None else mask
    empty = dict.fromkeys(COLUMNS)
    metadata = {"__$start_lsn": lsn, "__$seqval": lsn, "__$operation": operation, "__$update_mask": full}
    return {**metadata, **empty, **values}


def folded(*rows: dict[str, Any]) -> list[Change]:
    return fold(rows, "dbo_Employee", COLUMNS)


def test_an_update_becomes_one_change_from_old_to_new() -> None:
    mask = mask_of([3], 3)
    (change,) = folded(row(4, 7, mask, ID=1, Rate=12), row(3, 7, mask, ID=1, Rate=10))
    assert change.look.label == "› update"
    assert change.changed == ("Rate",)
    assert change.cell("Rate") == "10 → 12"
    assert change.cell("ID") == "1"
    assert change.summary(COLUMNS) == "Rate 10 → 12"


def test_inserts_and_deletes_stand_alone() -> None:
    insert, delete = folded(row(2, 9, ID=1, Name="a"), row(1, 8, ID=2, Name="b"))
    assert (insert.look.word, delete.look.word) == ("insert", "delete")
    assert insert.old is None
    assert delete.new is None
    assert delete.cell("Name") == "b"


def test_a_key_update_is_a_delete_and_an_insert() -> None:
    changes = folded(row(2, 5, ID=2), row(1, 5, ID=1))
    assert [change.operation for change in changes] == [Operation.INSERT, Operation.DELETE]


def test_without_the_old_row_only_the_mask_tells() -> None:
    (change,) = folded(row(4, 7, mask_of([2], 3), Name="new"))
    assert change.old is None
    assert change.changed == ("Name",)
    assert change.cell("Name") == "new"


def test_a_null_mask_names_no_column() -> None:
    assert changed_columns(None, COLUMNS) == ()


def test_a_null_is_shown_as_null() -> None:
    mask = mask_of([2], 3)
    (change,) = folded(row(4, 7, mask, Name="x"), row(3, 7, mask, Name=None))
    assert change.cell("Name") == "NULL → x"


@given(st.lists(st.sampled_from(["insert", "delete", "update"]), max_size=60), st.integers(1, 15))
def test_no_update_is_torn_between_pages(kinds: list[str], size: int) -> None:
    rows: list[dict[str, Any]] = []
    for seqval, kind in enumerate(kinds, 1):
        mask = mask_of([3], 3)
        new = {"insert": [row(2, seqval)], "delete": [row(1, seqval)]}.get(
            kind, [row(4, seqval, mask), row(3, seqval, mask)]
        )
        rows = new + rows
    shown: list[Change] = []
    for start in range(0, len(rows), size):
        shown += fold(page_of(rows[start : start + size + 1], size), "dbo_Employee", COLUMNS)
    assert [change.start_lsn for change in shown] == [f"0x{n:020X}" for n in range(len(kinds), 0, -1)]
    assert all(change.is_folded for change in shown if change.is_update)


@given(st.integers(1, 70).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(1, n)))))
def test_the_decoded_mask_names_the_columns_whose_bits_are_set_in_ordinal_order(
    case: tuple[int, set[int]],
) -> None:
    count, ordinals = case
    columns = [f"c{number}" for number in range(1, count + 1)]
    mask = mask_of(sorted(ordinals), count)
    assert changed_columns(mask, columns) == tuple(f"c{number}" for number in sorted(ordinals))
    assert changed_columns(full_mask(count), columns) == tuple(columns)


@given(st.sets(st.sampled_from(COLUMNS)))
def test_an_update_shows_old_and_new_in_exactly_the_masked_columns(changed: set[str]) -> None:
    mask = mask_of([COLUMNS.index(name) + 1 for name in changed], len(COLUMNS))
    old, new = ({name: f"{when} {name}" for name in COLUMNS} for when in ("old", "new"))
    (change,) = folded(row(4, 7, mask, **new), row(3, 7, mask, **old))
    for name in COLUMNS:
        assert change.cell(name) == (f"old {name} → new {name}" if name in changed else f"new {name}")
