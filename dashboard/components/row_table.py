"""A table of which one row can be selected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from dashboard.theme import table_height


def row_table(
    frame: pd.DataFrame | Styler,
    key: str,
    alt: str,
    most: int | None = None,
    columns: Mapping[str, Any] | None = None,
    selected: int | None = None,
) -> int | None:
    """Draws it; the place of the selected row, None when none is, or it is not there any more.

    most: rows that are seen without scrolling; None: as many as Streamlit finds well. columns: their looks.
    selected: the row that is selected where it is drawn for the first time.
    """
    count = len(frame.index)
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
    rows = event["selection"]["rows"]
    return int(rows[0]) if rows and rows[0] < count else None
