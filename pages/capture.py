"""Capture: does it keep up, and what limits it?"""

from __future__ import annotations

import streamlit as st

from dashboard import state
from dashboard.components import first_steps, series
from dashboard.components.job_card import job_card, no_job
from dashboard.components.kpis import kpi_row
from dashboard.components.log_held_card import log_held_card
from dashboard.components.session_table import session_cards


def charts() -> None:
    """Series of the scan sessions, at every tick."""
    now = state.selected()
    if now is None:
        return
    kpi_row(now)
    left, right = st.columns(2)
    with left:
        series.latency_card(now, "k_latency", series.LATENCY_SCALE)
        series.commands_card(now, "k_commands")
    with right:
        series.throughput_card(now, "k_throughput")
        series.empty_scans_card(now, "k_empty")
    log_held_card(now, "k_log")
    session_cards(now)


def job() -> None:
    """The job and its parameters: others may start, stop, tune, drop and add it too."""
    now = state.selected()
    if now is not None and now.capture_job is None:
        no_job(now)
    elif now is not None:
        job_card(now)


if first_steps.captured() is not None:
    state.live(job)
    state.live(charts)
