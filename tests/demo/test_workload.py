"""The plan of the workload, without a database."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from decimal import Decimal
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.demo.company import company
from engine.demo.workload import Company, Generated, Transaction, kind_weights, workload
from engine.model.workload_mix import SCHEMAS, Mix

KINDS = {
    "place_order", "amend_order", "ship_order", "cancel_order", "win_customer", "change_address",
    "move_stock", "receive_goods", "relocate_stock", "change_price", "hire", "leave", "take_vacation",
    "accrue_vacation", "reorganise", "regroup",
}  # fmt: skip


def small_company() -> Company:
    return Company(
        clock=datetime(2026, 1, 5, 8),
        departments={1: "Foundry", 2: "Stores"},
        employees=list(range(1, 61)),
        customers=[1, 2, 3],
        prices={product: Decimal(10 * product) for product in range(1, 13)},
        places={product: [1, 2, 1 + product % 8 + 2] for product in range(1, 13)},
        orders=[1, 2],
    )


def plan(seed: int, count: int) -> list[Transaction]:
    return list(islice(workload(small_company(), seed), count))


@settings(max_examples=25, deadline=None)
@given(st.integers())
def test_a_seed_gives_one_course_of_events(seed):
    assert plan(seed, 60) == plan(seed, 60)


def test_seeds_differ():
    assert plan(1, 20) != plan(2, 20)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000))
def test_a_key_is_used_only_after_the_transaction_that_generates_it_is_committed(seed):
    known: set[Generated] = set()
    for transaction in plan(seed, 300):
        made: set[Generated] = set()
        for statement in transaction.statements:
            used = {value for value in statement.parameters if isinstance(value, Generated)}
            assert used <= known | made
            if statement.generates:
                made.add(statement.generates)
        if not transaction.rolled_back:
            known |= made


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000))
def test_a_cancelled_order_is_never_touched_again(seed):
    gone: set[object] = set()
    for transaction in plan(seed, 300):
        orders = {statement.parameters[-1] for statement in transaction.statements}
        if transaction.kind in ("amend_order", "ship_order", "cancel_order"):
            assert orders & gone <= {None}
        if transaction.kind == "cancel_order" and not transaction.rolled_back:
            gone |= orders


def test_every_kind_of_transaction_happens_and_some_are_rolled_back():
    transactions = plan(7, 3000)
    assert {transaction.kind for transaction in transactions} == KINDS
    part = sum(transaction.rolled_back for transaction in transactions) / len(transactions)
    assert 0.02 < part < 0.07


def test_the_places_of_a_statement_are_filled():
    for transaction in plan(3, 500):
        for statement in transaction.statements:
            assert statement.sql.count("%s") == len(statement.parameters)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000))
def test_a_product_keeps_its_number_of_places_and_none_twice(seed):
    state = small_company()
    for _ in islice(workload(state, seed), 500):
        assert all(len(set(places)) == 3 for places in state.places.values())


def test_without_open_orders_or_free_places_the_plan_goes_on():
    state = small_company()
    state.orders = []
    state.places = {product: list(range(1, 11)) for product in state.places}
    assert len(list(islice(workload(state, 1), 500))) == 500


def test_the_company_is_the_same_every_time():
    assert list(company()) == list(company())


@pytest.mark.parametrize("table", list(company()), ids=lambda table: f"{table.schema}.{table.table}")
def test_rows_have_their_columns(table):
    assert table.rows
    assert {len(row) for row in table.rows} == {len(table.columns)}


def test_the_company_has_a_few_thousand_rows():
    assert 2000 < sum(len(table.rows) for table in company()) < 6000


# Mixes

MIXES = st.builds(
    Mix,
    schemas=st.sets(st.sampled_from(SCHEMAS)).map(",".join),
    inserts=st.integers(0, 3),
    updates=st.integers(0, 3),
    deletes=st.integers(0, 3),
    rows=st.integers(1, 40),
)


def mixed(mix: Mix, seed: int, count: int) -> list[Transaction]:
    return list(islice(workload(small_company(), seed, mix), count))


@settings(max_examples=60, deadline=None)
@given(MIXES, st.integers(0, 100))
def test_a_mix_keeps_to_its_tables_and_gives_one_course_of_events(mix, seed):
    assert mix.problem() is None
    transactions = mixed(mix, seed, 40)
    assert transactions == mixed(mix, seed, 40)
    for transaction in transactions:
        for statement in transaction.statements:
            schema = re.match(r'(?:INSERT INTO|UPDATE|DELETE FROM) "(\w+)"', statement.sql)
            assert schema is not None
            assert schema[1] in mix.of


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 100), st.integers(2, 200))
def test_a_transaction_has_so_many_statements_at_least(seed, rows):
    for transaction in mixed(Mix(rows=rows), seed, 20):
        assert rows <= len(transaction.statements) < rows + 40
        for statement in transaction.statements:
            assert statement.sql.count("%s") == len(statement.parameters)


def test_parts_say_what_is_done():
    done = Counter(transaction.statements[0].sql.split()[0] for transaction in mixed(Mix(updates=1), 1, 200))
    assert set(done) == {"UPDATE"}
    weights = kind_weights(Mix(inserts=1, deletes=3))
    assert sum(weight for kind, weight in weights.items() if kind in ("cancel_order", "leave")) == 3
    assert sum(weights.values()) == 4


def test_a_plan_ends_where_nothing_is_left_to_do():
    state = small_company()
    left = len(list(workload(state, 1, Mix("HumanResources", deletes=1))))
    assert 10 <= left < 20
    assert len(state.employees) == 50
    assert mixed(Mix("Production", deletes=1), 1, 5) == []


@pytest.mark.parametrize(
    ("mix", "said"),
    [
        (Mix("Sales,Attic"), "no schema 'Attic'"),
        (Mix(inserts=-1), "parts of 0 to 1000"),
        (Mix(rows=0), "1 to 10000"),
        (Mix(burst=10_001), "1 to 10000"),
    ],
)
def test_what_cannot_be_mixed_is_said(mix, said):
    assert said in (mix.problem() or "")
