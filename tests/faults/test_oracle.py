"""The oracle finds what a broken capture would do to change tables."""

from __future__ import annotations

import random

import pytest

from tests.faults.oracle import Table, difference, expected_rows, in_order
from tests.faults.source_replay import Change, Transaction

TABLE = Table("public.t", {"id": int, "name": str}, ("id",))
HISTORY = [
    Transaction(100, [Change("public.t", 90, None, {"id": "1", "name": "a"})]),
    Transaction(
        200,
        [
            Change("public.t", 190, {"id": "1", "name": "a"}, {"id": "1", "name": None}),
            Change("public.other", 191, None, {"x": "1"}),
            Change("public.t", 192, {"id": "1", "name": None}, {"id": "2", "name": None}),
            Change("public.t", 192, {"id": "2", "name": None}, {"id": "2", "name": None}),
        ],
    ),
    Transaction(300, [Change("public.t", 290, {"id": "2", "name": None}, None)]),
]


def rows():
    return expected_rows(HISTORY, TABLE)


def test_rows_follow_the_reference():
    found = [(r["__$operation"], r["__$update_mask"], r["__$command_id"], r["id"], r["name"]) for r in rows()]
    assert found == [
        (2, b"\x03", 1, 1, "a"),
        (3, b"\x02", 1, 1, "a"),
        (4, b"\x02", 1, 1, None),
        (1, b"\x03", 3, 1, None),
        (2, b"\x03", 3, 2, None),
        (1, b"\x03", 1, 2, None),
    ]


def test_the_same_rows_do_not_differ():
    assert difference(rows(), rows()) is None


def _lose_one(found):
    del found[4]


def _double_a_commit(found):
    found[1:1] = [dict(row) for row in found[1:3]]


def _swap_old_and_new(found):
    found[1]["__$operation"], found[2]["__$operation"] = 4, 3


def _swap_rows(found):
    found[3], found[4] = found[4], found[3]


def _null_a_column(found):
    found[0]["name"] = None


def _null_a_mask(found):
    found[2]["__$update_mask"] = None


def _lose_the_last(found):
    found.pop()


def _leave_a_column_out(found):
    del found[0]["__$end_lsn"]


@pytest.mark.parametrize(
    "break_it",
    [
        _lose_one,
        _double_a_commit,
        _swap_old_and_new,
        _swap_rows,
        _null_a_column,
        _null_a_mask,
        _lose_the_last,
        _leave_a_column_out,
    ],
)
def test_what_is_broken_is_found(break_it):
    found = rows()
    break_it(found)
    assert difference(rows(), found) is not None


COMMITS = 25_000


@pytest.fixture(scope="module")
def many() -> list[Transaction]:
    """100,000 rows: of each commit an insert, an update and a delete."""
    return [
        Transaction(
            number * 10,
            [
                Change("public.t", number * 10 - 3, None, {"id": str(number), "name": "a"}),
                Change(
                    "public.t",
                    number * 10 - 2,
                    {"id": str(number), "name": "a"},
                    {"id": str(number), "name": "b"},
                ),
                Change("public.t", number * 10 - 1, {"id": str(number), "name": "b"}, None),
            ],
        )
        for number in range(1, COMMITS + 1)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_one_row_in_a_hundred_thousand_is_found(many, seed):
    wanted = expected_rows(many, TABLE)
    assert len(wanted) == 4 * COMMITS
    chance = random.Random(seed)
    for break_it in (_lose_at, _double_the_commit_at, _swap_at, _null_at):
        commit = chance.randrange(COMMITS) * 4
        found = [dict(row) for row in wanted] if break_it in (_swap_at, _null_at) else list(wanted)
        break_it(found, commit)
        # As a check does with what it reads: in whichever order files have it.
        chance.shuffle(found)
        assert difference(wanted, in_order(found)) is not None, break_it.__name__


def _lose_at(found, commit):
    del found[commit + 3]


def _double_the_commit_at(found, commit):
    found += [dict(row) for row in found[commit : commit + 4]]


def _swap_at(found, commit):
    found[commit + 1]["__$operation"], found[commit + 2]["__$operation"] = 4, 3


def _null_at(found, commit):
    found[commit + 2]["name"] = None
