"""DDL of captured tables: the list, and one statement with the columns before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import state
from dashboard.change_links import RANGE
from dashboard.components.problem import escaped
from dashboard.components.row_table import row_table
from dashboard.migration import ColumnChange, column_changes
from dashboard.snapshot import DatabaseView
from engine.model.ddl_history import SchemaChange

NO_TEXT = "(not told: the source has no event triggers)"


def ddl_list(view: DatabaseView, changes: Sequence[SchemaChange]) -> SchemaChange | None:
    """The list, newest first; returns the selected entry, the newest when none is."""
    ordered = list(reversed(changes))
    with st.container(border=True, gap="xsmall"):
        st.markdown("**DDL on captured tables**", help="`cdc.ddl_history`: as far as the log was read.")
        if not ordered:
            st.caption("None yet. ALTER TABLE of a captured table is listed here once capture has read it.")
            return None
        row = row_table(
            _frame(ordered),
            "s_ddl",
            "DDL on captured tables, newest first",
            6,
            _columns(),
            rows=[(view.name, each.history) for each in ordered],
        )
    return ordered[row or 0]


def _frame(changes: Sequence[SchemaChange]) -> pd.DataFrame:
    viewer, now = state.viewer(), state.now()
    rows = [each.history for each in changes]
    return pd.DataFrame(
        {
            "ddl_time": [fmt.clock(row.ddl_time, now, viewer.zone, viewer.local) for row in rows],
            "ddl_lsn": [fmt.lsn_short(row.ddl_lsn) for row in rows],
            "ddl_command": [" ".join(row.ddl_command.split()) or NO_TEXT for row in rows],
            "capture_instance": [row.capture_instance for row in rows],
            "required_column_update": ["1" if row.required_column_update else "0" for row in rows],
        }
    )


def _columns() -> dict[str, Any]:
    hint = "1: a captured column got another type, and the change table was converted."
    widths = {"ddl_time": 110, "ddl_lsn": 100, "ddl_command": 430, "capture_instance": 210}
    config: dict[str, Any] = {n: st.column_config.TextColumn(width=width) for n, width in widths.items()}
    return config | {"required_column_update": st.column_config.TextColumn(width=190, help=hint)}


def ddl_drawer(view: DatabaseView, change: SchemaChange) -> None:
    """One statement whole, its columns before and after, and the way to the changes from there on."""
    row = change.history
    with st.container(border=True, gap="small", key="s_drawer"):
        st.markdown(f"## {escaped(f'{row.source_schema}.{row.source_table}')}", anchors=False)
        when = fmt.moment_and_age(row.ddl_time, state.now(), state.viewer().axis_zone)
        st.markdown(f"committed {when} at `{row.ddl_lsn}`")
        st.code(row.ddl_command or NO_TEXT, language="sql", wrap_lines=True)
        _shapes(change)
        _link(view, change)


def _shapes(change: SchemaChange) -> None:
    if change.columns_before is None or change.columns_after is None:
        st.caption("The columns of that time were not kept: an earlier version read this DDL.")
        return
    compared = column_changes(change.columns_before, change.columns_after)
    changed = [each for each in compared if each.what]
    if changed:
        st.table([as_row(each) for each in changed], border="horizontal", hide_index=True)
    else:
        st.caption("No column is another: the statement changed something else of the table.")
    same = [each for each in compared if not each.what]
    if same:
        with st.expander(f"{fmt.plural(len(same), 'column')} as before", type="compact"):
            st.table([as_row(each) for each in same], border="horizontal", hide_index=True)


def as_row(change: ColumnChange) -> dict[str, str]:
    """A column before and after, for a table."""
    before = f"{change.before} {change.before_type}" if change.before is not None else fmt.DASH
    after = f"{change.after} {change.after_type}" if change.after is not None else fmt.DASH
    return {"before": escaped(before), "after": escaped(after), "": change.what}


def _link(view: DatabaseView, change: SchemaChange) -> None:
    row = change.history
    parameters = {"db": view.name, "c_ci": row.capture_instance, "c_by": RANGE, "c_to": ""}
    st.page_link(
        st.session_state["pages"]["changes"],
        label="Changes from this LSN on",
        icon=":material/history:",
        query_params=parameters | {"c_from": str(row.ddl_lsn)},
        help=f"of {row.capture_instance}",
    )
