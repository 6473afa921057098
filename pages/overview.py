"""Overview: is capture healthy now?"""

from __future__ import annotations

import streamlit as st

from dashboard import state
from dashboard.components import first_steps, series
from dashboard.components.fleet_table import fleet_table
from dashboard.components.job_card import job_line
from dashboard.components.kpis import kpi_row
from dashboard.components.latest_changes import is_reading_first, latest_changes
from dashboard.components.validity_card import validity_card
from dashboard.components.verdict import verdict


def at_a_glance() -> None:
    """The verdict and the table of all databases, then the figures and the job of the selected one."""
    picture = state.snapshot()
    verdict(picture)
    fleet_table(picture)
    view = first_steps.captured()
    if view is not None:
        first_steps.refused(view)
        kpi_row(view)
        job_line(view, "o_job")


def in_detail() -> None:
    """Latest changes and the course of the selected database."""
    view = state.selected()
    if view is None or first_steps.is_first(view):
        return
    latest_changes(view)
    latency, throughput, empty = st.columns(3)
    with latency:
        series.latency_card(view, "o_latency")
    with throughput:
        series.throughput_card(view, "o_throughput")
    with empty:
        series.empty_scans_card(view, "o_empty")
    validity_card(view, "o_validity")


state.live(at_a_glance)
state.live(in_detail, at_once=is_reading_first(state.selected()))
