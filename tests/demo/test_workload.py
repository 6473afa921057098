"""The plan of the workload, without a database."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.demo.company import company
from engine.demo.workload import Company, Generated, Transaction, workload

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
