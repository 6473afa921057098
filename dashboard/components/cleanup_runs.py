"""Runs of the cleanup job, and what one of them came to."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import glossary, state
from dashboard.charts.cleanup_effect import cleanup_chart
from dashboard.components.chart_card import chart_card
from dashboard.components.problem import escaped
from dashboard.components.row_table import row_table
from dashboard.format import Zone
from dashboard.snapshot import DatabaseView
from engine.model.job import JobRun, RunOutcome

RUNS = 50
_LOOKS = {
    RunOutcome.RUNNING: "▶ running",
    RunOutcome.SUCCEEDED: "✓ succeeded",
    RunOutcome.FAILED: "✕ failed",
    RunOutcome.STOPPED: "■ stopped",
    RunOutcome.INTERRUPTED: "! interrupted",
}


@st.cache_resource(ttl=2.0, max_entries=100, show_spinner=False)
def runs_of(database: str) -> Sequence[JobRun]:
    """The newest runs, read once for all viewers."""
    return state.engine().job_history(database, "cleanup", RUNS)


def run_cards(view: DatabaseView) -> None:
    """The runs, then the effect of the one that is selected, or the newest that is over."""
    runs = runs_of(view.name)
    with st.container(border=True, gap="xsmall"):
        st.markdown("**What went**: runs of the job", help=f"Newest first. {glossary.CLEANUP_EFFECT}")
        if not runs:
            st.caption("None yet. Each run is listed here with what it deleted and what moved.")
            return
        chosen = _table(view, runs)
    _effect(chosen)


def _table(view: DatabaseView, runs: Sequence[JobRun]) -> JobRun:
    viewer, now = state.viewer(), state.now()
    zone = Zone.UTC if viewer.zone is Zone.RELATIVE else viewer.zone
    frame = pd.DataFrame(
        {
            "began": [fmt.clock(run.start_time, now, zone, viewer.local) for run in runs],
            "took": [_took(run) for run in runs],
            "outcome": [_LOOKS[run.outcome] for run in runs],
            "rows deleted": [run.deleted_rows for run in runs],
            "retention": [_parameter(run, "retention") for run in runs],
            "threshold": [_parameter(run, "threshold") for run in runs],
            "message": [run.message for run in runs],
        }
    )
    row = row_table(
        frame,
        "l_runs",
        "Runs of the cleanup job",
        8,
        {
            "began": st.column_config.Column(width=165),
            "took": st.column_config.Column(width=70),
            "outcome": st.column_config.Column(width=100),
            "rows deleted": st.column_config.NumberColumn(format="localized", width=95),
            "retention": st.column_config.Column(width=80),
            "threshold": st.column_config.Column(width=80),
        },
        rows=[(view.name, run.start_time) for run in runs],
    )
    if row is not None:
        return runs[row]
    return next((run for run in runs if run.tables), runs[0])


def _took(run: JobRun) -> str:
    return fmt.DASH if run.end_time is None else fmt.duration((run.end_time - run.start_time).total_seconds())


def _parameter(run: JobRun, name: str) -> str:
    value = run.parameters.get(name)
    return fmt.DASH if value is None else fmt.number(int(value))


def _effect(run: JobRun) -> None:
    zone = state.viewer().axis_zone
    when = fmt.moment(run.start_time, zone)
    if not run.tables:
        st.caption(f"Of the run of {when} it is not known what it did to each table: {escaped(run.message)}")
        return
    chart_card(
        f"Effect of the run of {when}", cleanup_chart(run.tables, zone), "l_effect", glossary.CLEANUP_EFFECT
    )
