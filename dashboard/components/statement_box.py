"""The same action in T-SQL and PySpark, with a button to copy."""

from __future__ import annotations

import streamlit as st

from dashboard.statements import Statement

LINES = 12
"""So many are shown at once; a longer statement scrolls."""


def statement_box(statement: Statement) -> None:
    """Two tabs with code."""
    for tab, text, language in zip(
        st.tabs(["T-SQL", "PySpark"]), (statement.tsql, statement.pyspark), ("sql", "python"), strict=True
    ):
        is_long = text.count("\n") >= LINES
        tab.code(text, language=language, height=280 if is_long else "content", wrap_lines=True)


def statement_popover(statement: Statement, key: str | None = None) -> None:
    """A button that shows the statement of the action beside it."""
    with st.popover("Statement", icon=":material/code:", type="tertiary", key=key):
        statement_box(statement)
