"""The same action in T-SQL and PySpark, with a button to copy."""

from __future__ import annotations

import streamlit as st

from dashboard.statements import Statement


def statement_box(statement: Statement, height: int | None = None) -> None:
    """Two tabs with code."""
    tsql, pyspark = st.tabs(["T-SQL", "PySpark"])
    tsql.code(statement.tsql, language="sql", height=height or "content")
    pyspark.code(statement.pyspark, language="python", height=height or "content")
