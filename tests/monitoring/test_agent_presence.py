"""When somebody is told that no agent runs: not of every restart, and not again and again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.monitoring.agent_presence import PATIENCE_SECONDS, STEADY_SECONDS, AgentPresence


def told(looks, step=5.0):
    presence = AgentPresence()
    return [presence.look(alive, number * step) for number, alive in enumerate(looks)]


def test_an_agent_that_is_back_in_time_is_nobodys_business():
    away = int(PATIENCE_SECONDS // 5) - 1
    assert True not in told([True] * 10 + [False] * away + [True] * 20)


def test_one_that_stays_away_is_told_until_it_stays():
    looks = told([False] * 20 + [True] * 20)
    assert looks[int(PATIENCE_SECONDS // 5)] is True
    assert looks[20] is None
    assert looks[-1] is False


def test_one_that_dies_at_each_start_is_told_and_not_taken_back():
    looks = told(([False] * 3 + [True] * 2) * 12)
    assert True in looks
    assert False not in looks


@given(st.lists(st.booleans(), max_size=60))
def test_what_is_said_has_its_reason(looks):
    for number, said in enumerate(told(looks)):
        if said is True:
            assert not looks[number]
        if said is False:
            steady = int(STEADY_SECONDS // 5)
            assert number >= steady
            assert all(looks[number - steady : number + 1])
