"""The tuner: what parameters would have done to a load, and which it recommends."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from dashboard.tuner import (
    GOALS,
    HEADROOM,
    LEAST_COST,
    Load,
    alternatives,
    load_of,
    outcome,
    recommended,
    sentence,
)
from engine.model.collection import HistoryPoint
from engine.model.job import CaptureParameters

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
DEFAULT = CaptureParameters()
loads = st.builds(
    Load,
    st.lists(st.integers(0, 200_000), min_size=1, max_size=30).map(tuple),
    st.just(60),
    st.floats(LEAST_COST, 0.05),
    st.floats(0, 2),
)
parameters = st.builds(
    CaptureParameters, st.integers(1, 20_000), st.integers(1, 100), st.just(True), st.integers(0, 300)
)
goals = st.sampled_from(list(GOALS.values()))


def a_point(minute: int, transactions: int, duration: int) -> HistoryPoint:
    start = NOON + timedelta(minutes=minute)
    return HistoryPoint("hr", start, 1, 1, 1, transactions, 9, 9, duration, 0, 0)


def test_a_load_has_every_stretch_and_what_a_transaction_costs() -> None:
    load = load_of([a_point(3, 3000, 14), a_point(0, 100, 2)], 60)
    assert load.transactions == (100, 0, 0, 3000)
    assert (load.scan, load.cost, load.peak) == (2, 12 / 3000, 50)
    steady = load_of([a_point(minute, 20, 1) for minute in range(9)], 60)
    assert (steady.scan, steady.cost) == (1, LEAST_COST)  # no share of a scan is a transaction's
    assert load_of([], 60) == Load((), 60, LEAST_COST)


def test_a_burst_above_the_ceiling_leaves_a_backlog_that_takes_its_time() -> None:
    burst = Load((120_000, 0, 0), 60, LEAST_COST)
    tight = outcome(CaptureParameters(100, 1, pollinginterval=5), burst)
    assert tight.ceiling < 20
    assert tight.behind == 180
    assert tight.worst > 5000
    assert outcome(DEFAULT, burst).worst < 200


@given(loads, parameters)
def test_more_transactions_a_scan_and_less_pause_are_never_slower_to_catch_up(
    load: Load, given_parameters: CaptureParameters
) -> None:
    found = outcome(given_parameters, load)
    wider = outcome(replace(given_parameters, maxtrans=given_parameters.maxtrans * 2), load)
    assert wider.ceiling >= found.ceiling
    assert wider.behind <= found.behind
    eager = outcome(replace(given_parameters, pollinginterval=0), load)
    assert eager.ceiling >= found.ceiling
    assert eager.behind <= found.behind


@given(loads, parameters, goals)
def test_what_is_recommended_meets_the_goal_where_anything_does(
    load: Load, running: CaptureParameters, goal: timedelta
) -> None:
    best = recommended(running, load, goal)
    default = outcome(DEFAULT, load)
    if default.meets(goal, load):
        assert best.meets(goal, load)
        assert best.drains <= default.drains
    assert best.worst <= max(outcome(running, load).worst, goal.total_seconds())
    words = [word for word, _ in alternatives(running, load, goal)]
    assert sum("recommended" in word for word in words) == 1
    assert sentence(running, load, goal)


def test_what_is_good_is_left_alone_and_what_is_too_eager_is_calmed() -> None:
    quiet = Load((60, 30, 60), 60, LEAST_COST)
    within = GOALS["30 s"]
    assert recommended(CaptureParameters(pollinginterval=15), quiet, within).parameters.pollinginterval == 15
    calmed = recommended(DEFAULT, quiet, within)
    assert calmed.parameters == CaptureParameters(pollinginterval=15)
    assert "less often" in sentence(DEFAULT, quiet, within)
    busy = Load((60_000,) * 5, 60, 0.0001)
    best = recommended(DEFAULT, busy, GOALS["10 s"])
    assert best.meets(GOALS["10 s"], busy)
    assert best.ceiling >= HEADROOM * busy.peak
    assert best.parameters.maxtrans * best.parameters.maxscans > DEFAULT.maxtrans * DEFAULT.maxscans
    assert "nothing to go by" in sentence(DEFAULT, Load((0,), 60, LEAST_COST), within)
