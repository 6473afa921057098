"""A table of which one row can be selected."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from dashboard.selection import DrawnRows, told_apart
from dashboard.theme import table_height


def row_table(
    frame: pd.DataFrame | Styler,
    key: str,
    alt: str,
    most: int | None = None,
    columns: Mapping[str, Any] | None = None,
    selected: int | None = None,
    rows: Sequence[Hashable] | None = None,
) -> int | None:
    """Draws it; the place of the selected row, None when none is, or it is not there any more.

    most: rows that are seen without scrolling; None: as many as Streamlit finds well. columns: their looks.
    selected: the row that is selected where it is drawn for the first time. rows: what tells each row from
    the others; the selection then stays with its row wherever newer ones move it. None where rows keep their
    places.
    """
    count = len(frame.index)
    if rows is not None:
        _follow(key, told_apart(rows))
    event = st.dataframe(
        frame,
        hide_index=True,
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        height="auto" if most is None else table_height(count, most),
        column_config=columns,
        alt=alt,
        selection_default=None if selected is None else {"selection": {"rows": [selected]}},
    )
    place = _place(event)
    return place if place is not None and place < count else None


def _follow(key: str, rows: tuple[Hashable, ...]) -> None:
    """Has the browser mark the row that is selected, wherever it is now."""
    drawn, before = f"{key}:drawn", st.session_state.get(f"{key}:drawn")
    st.session_state[drawn] = DrawnRows(rows)
    if not isinstance(before, DrawnRows) or key not in st.session_state:  # the first time, or back again
        return
    clicked = _place(st.session_state[key])
    place = before.followed(clicked, rows)
    if place != clicked:
        st.session_state[key] = {"selection": {"rows": [] if place is None else [place]}}


def _place(table: Any) -> int | None:
    rows = table["selection"]["rows"]
    return int(rows[0]) if rows else None


def keep_in_address(parameter: str, selected: str | None, typed: str | None = None) -> None:
    """Has the address say which row is selected; a parameter that says so already is left alone.

    typed: the key of a text box that chooses the rows and is in the address itself. A run that has its text
    but not yet the address with it, since a tick was under way, would write the address without: the next
    run does it.
    """
    if typed is not None and (st.session_state.get(typed) or "") != st.query_params.get(typed, ""):
        return
    if selected is None:
        st.query_params.pop(parameter, None)
    elif st.query_params.get(parameter) != selected:
        st.query_params[parameter] = selected
