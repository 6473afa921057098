"""Net changes without Spark, against the same naive model as `net_changes`."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.lake.tables import Lake, change_table_schema
from engine.model.mask import full_mask
from engine.query.net_in_arrow import key_numbers, key_shares, net_rows
from engine.query.net_plan import net_plan
from tests.lake.change_tables import append_of, capture_instance
from tests.query.histories import COLUMNS, KEY, History, histories

INSTANCE = capture_instance(COLUMNS, KEY)
OPTIONS = {"all": (False, False), "all with mask": (False, True), "all with merge": (True, False)}


def rows_of(many: list[History]) -> pa.Table:
    """The change table with these histories, told apart by their numbers."""
    for number, history in enumerate(many):
        history.number = number
        history.changes = [(*change[:3], (number, *change[3][1:])) for change in history.changes]
    changes = [change for history in many for change in history.changes]
    masks = [mask for history in many for mask in history.masks]
    return append_of(Lake("/"), INSTANCE, changes, masks).rows


@given(st.lists(histories(), max_size=6), st.sampled_from(list(OPTIONS)), st.randoms())
def test_net_changes_follow_the_merge_table(many, option, shuffled):
    rows = rows_of(many)
    order = list(range(rows.num_rows))
    shuffled.shuffle(order)
    merge, masks = OPTIONS[option]
    found = net_rows(rows.take(pa.array(order, pa.int64())), KEY, 1, merge, masks)
    names = ["__$start_lsn", "__$operation", "__$update_mask", *COLUMNS]
    values = zip(*(found[name].to_pylist() for name in names), strict=True)
    assert sorted(values, key=lambda row: row[3:5]) == [row for each in many for row in each.net(option)]


@given(st.lists(histories(), max_size=6), st.integers(1, 5))
def test_shares_hold_each_key_once_and_together_all(many, shares):
    rows = rows_of(many)
    whole = net_rows(rows, KEY, 1, False, False)
    owners = key_shares(rows, KEY, shares)
    parts = [
        net_rows(rows.filter(pa.array(owners == share)), KEY, 1, False, False) for share in range(shares)
    ]
    by_key = [("history", "ascending"), ("id", "ascending")]
    assert pa.concat_tables(parts).sort_by(by_key) == whole.sort_by(by_key)


@given(st.lists(histories(), max_size=6), st.sampled_from(list(OPTIONS)), st.data())
def test_rows_taken_out_of_each_file_are_the_net_changes(many, option, data):
    """However changes fall into files and batches, and whether parts by key had to wait in files."""
    rows = rows_of(many)
    merge, masks = OPTIONS[option]
    cuts = sorted(data.draw(st.lists(st.integers(0, rows.num_rows), max_size=3)))
    files = [rows.slice(a, b - a) for a, b in pairwise([0, *cuts, rows.num_rows])]
    size = data.draw(st.integers(1, 5))
    columns = ["__$start_lsn", "__$command_id", "__$operation", *(["__$update_mask"] if masks else []), *KEY]
    plan = net_plan(
        lambda file: iter(files[file].select(columns).to_batches(max_chunksize=size)),
        [file.num_rows for file in files],
        KEY,
        1,
        merge=merge,
        masks=masks,
        at_once=data.draw(st.sampled_from([2, 1000])),
    )
    found = []
    for each in pickle.loads(pickle.dumps(plan)):
        first = 0
        for batch in files[each.file].to_batches(max_chunksize=size):
            found += each.of_batch(batch, first).to_pylist()
            first += batch.num_rows
    expected = net_rows(rows, KEY, 1, merge, masks).to_pylist()
    assert sorted(found, key=str) == sorted(expected, key=str)


VALUES = {
    "bigint": [2**63 - 1, 2**63 - 2, -(2**63)],
    "double": [0.1, 0.1 + 2**-56, float("inf")],
    "boolean": [True, False],
    "string": ["a", "A", "a ", "ä", ""],
    "binary": [b"", b"\0", b"a"],
    "date": [date.max, date.min],
    "timestamp": [datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), datetime(1, 1, 1, tzinfo=UTC)],
    "decimal(38,2)": [Decimal("1.00"), Decimal("1.01"), Decimal("9" * 36 + ".99")],
    "array<int>": [[1], [1, 2], []],
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_a_key_are_told_apart_exactly(kind):
    values = VALUES[kind]
    type_ = change_table_schema(capture_instance({"v": kind})).field("v").type
    rows = pa.table({"v": pa.chunked_array([pa.array([*values, *values], type_)])})
    numbers = key_numbers(rows, ["v"])
    assert len(set(numbers)) == len(values)
    assert list(numbers[: len(values)]) == list(numbers[len(values) :])
    assert np.array_equal(*np.split(key_shares(rows, ["v"], 1000), 2))


def test_times_beyond_pythons_own_are_keys_too():
    micros = [224_000 * 365 * 86_400 * 10**6, -5_000 * 365 * 86_400 * 10**6]
    rows = pa.table({"v": pa.chunked_array([pa.array(micros, pa.timestamp("us", "UTC"))])})
    assert len(set(key_numbers(rows, ["v"]))) == 2


def test_a_mask_is_as_wide_as_the_instance():
    wide = capture_instance({f"c{n}": "int" for n in range(20)}, ["c0"])
    images = [(1, 1, 4, tuple(range(20))), (2, 1, 4, tuple(range(20)))]
    rows = append_of(Lake("/"), wide, images, [bytes([0, 0, 1]), bytes([8, 0, 0])]).rows
    [mask] = net_rows(rows, ["c0"], 3, False, True)["__$update_mask"].to_pylist()
    assert (mask, len(full_mask(20))) == (bytes([8, 0, 1]), 3)
