"""All databases in one table, the worst first; a click on a name selects it for the page."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import glossary, state
from dashboard.fleet import NOT_ENABLED, FleetRow, fleet
from dashboard.snapshot import Snapshot
from dashboard.theme import STATUS, table_height

_CLICK, _CHOSEN = "o_fleet_click", "o_fleet_chosen"


def fleet_table(picture: Snapshot) -> None:
    """Draws it where there is more than one database."""
    if st.session_state.pop(_CHOSEN, False):
        st.rerun(scope="app")  # the header and all that is below show another database
    rows = fleet(picture)
    if not rows:
        return
    st.container(key="o_fleet").dataframe(
        _frame(rows),
        hide_index=True,
        height=table_height(len(rows), 8),
        alt="All databases, the worst first",
        column_config={
            "database": st.column_config.ButtonColumn(
                "database",
                pinned=True,
                alignment="left",
                width=110,
                key=_CLICK,
                on_click=_choose,
                help="A click shows this database.",
            ),
            "verdict": st.column_config.Column(width=95),
            "capture": st.column_config.Column(width=95, help=glossary.CAPTURE_STATE),
            "since": st.column_config.Column(width=115),
            "latency": st.column_config.Column(alignment="right", help=glossary.LATENCY),
            "log held": st.column_config.Column(alignment="right", help=glossary.LOG_HELD),
            "capture instances": st.column_config.Column(
                alignment="right", help=glossary.TERMS["capture instance"]
            ),
            "high watermark": st.column_config.Column(alignment="right", help=glossary.HIGH_WATERMARK),
        },
    )


def _frame(rows: list[FleetRow]) -> pd.DataFrame:
    now = state.now()
    return pd.DataFrame(
        {
            "database": [row.database for row in rows],
            "verdict": ["– Not enabled" if _is_off(row) else STATUS[row.verdict].label for row in rows],
            "capture": [fmt.DASH if row.state is None else row.state.value for row in rows],
            "since": [fmt.DASH if row.since is None else fmt.ago(row.since, now) for row in rows],
            "latency": [fmt.DASH if row.latency is None else fmt.duration(row.latency) for row in rows],
            "log held": [fmt.size(row.log_held) for row in rows],
            "capture instances": [fmt.DASH if _is_off(row) else fmt.number(row.instances) for row in rows],
            "high watermark": [fmt.DASH if row.high is None else fmt.ago(row.high, now) for row in rows],
        }
    )


def _is_off(row: FleetRow) -> bool:
    return row.verdict == NOT_ENABLED


def _choose() -> None:
    """By the name that was clicked: the rows may stand in another order by now."""
    st.session_state["db"] = st.session_state[_CLICK]["label"]
    st.session_state[_CHOSEN] = True
