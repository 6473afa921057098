"""A selected row stays selected while others come, go and move."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from dashboard.selection import DrawnRows, told_apart
from tests.dashboard.conftest import PATIENCE

rows = st.lists(st.integers(0, 5), max_size=12)


@given(rows, rows, st.integers(0, 15) | st.none())
def test_a_row_is_followed_to_its_place_or_is_gone(before: list[int], now: list[int], clicked: int) -> None:
    drawn, there = told_apart(before), told_apart(now)
    place = DrawnRows(drawn).followed(clicked, there)
    if clicked is None or clicked >= len(drawn) or drawn[clicked] not in there:
        assert place is None
    else:
        assert place is not None
        assert there[place] == drawn[clicked]


@given(rows, rows)
def test_rows_are_told_apart_whatever_comes_on_top(older: list[int], newer: list[int]) -> None:
    told = told_apart(older)
    assert len(set(told)) == len(older)
    assert told_apart([*newer, *older])[len(newer) :] == told


def app() -> None:
    import pandas as pd
    import streamlit as st

    from dashboard.components.row_table import row_table

    names = st.session_state["names"]
    if not st.toggle("away", key="away"):
        place = row_table(pd.DataFrame({"name": names}), "table", "Names", rows=names)
        st.write("nothing" if place is None else names[place])


def shown(test: AppTest, *names: str) -> str:
    test.session_state["names"] = list(names)
    test.run()
    assert not test.exception
    return str(test.markdown[0].value)


def click(test: AppTest, *places: int) -> None:
    test.session_state["table"] = {"selection": {"rows": list(places)}}


def test_newer_rows_leave_the_selected_one_selected() -> None:
    test = AppTest.from_function(app, default_timeout=PATIENCE)
    assert shown(test, "b", "a") == "nothing"
    click(test, 1)
    assert shown(test, "b", "a") == "a"
    assert shown(test, "d", "c", "b", "a") == "a"
    assert test.session_state["table"]["selection"]["rows"] == [3], "the browser marks it there"
    assert shown(test, "d", "c", "b", "a") == "a"
    assert shown(test, "a", "d") == "a"
    click(test)
    assert shown(test, "a", "d") == "nothing"


def test_a_click_means_the_row_that_was_seen_and_not_what_came_with_it() -> None:
    test = AppTest.from_function(app, default_timeout=PATIENCE)
    shown(test, "b", "a")
    click(test, 0)
    assert shown(test, "c", "b", "a") == "b"
    click(test, 0)
    assert shown(test, "d", "c", "b", "a") == "c"


def test_a_row_that_is_gone_is_selected_no_more_nor_is_another() -> None:
    test = AppTest.from_function(app, default_timeout=PATIENCE)
    shown(test, "b", "a")
    click(test, 0)
    shown(test, "b", "a")
    assert shown(test, "a") == "nothing"
    assert shown(test, "b", "a") == "nothing"


def test_nothing_is_selected_after_the_table_was_away() -> None:
    test = AppTest.from_function(app, default_timeout=PATIENCE)
    shown(test, "b", "a")
    click(test, 1)
    assert shown(test, "b", "a") == "a"
    test.toggle("away").set_value(True).run()
    test.toggle("away").set_value(False)
    assert shown(test, "b", "a") == "nothing"
