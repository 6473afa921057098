"""The charts of a database's scan sessions, drawn from a snapshot."""

from __future__ import annotations

from dashboard import glossary, sessions, state
from dashboard.ceilings import ceiling_steps
from dashboard.charts.empty_scans import empty_scans_chart
from dashboard.charts.latency import latency_chart
from dashboard.charts.throughput import commands_chart, transactions_chart
from dashboard.components.chart_card import chart_card
from dashboard.components.scale_switch import AUTO, LINEAR, LOG, ScaleSwitch
from dashboard.snapshot import DatabaseView

LATENCY_SCALE = ScaleSwitch("k_scale", (AUTO, LOG, LINEAR))


def latency_card(view: DatabaseView, key: str, scale: ScaleSwitch | None = None) -> None:
    """Latency for each scan session, with the threshold of alerts; a switch only where there is room."""
    viewer, thresholds = state.viewer(), state.snapshot().thresholds
    span = viewer.axis(state.now())
    recent = sessions.reaching_into(view.history, span.start)
    chart = latency_chart(
        sessions.latencies(recent, span.start, span.end, viewer.step),
        sessions.empty_runs(recent, span.start),
        view.errors,
        sessions.restarts(recent),
        span,
        None if thresholds is None else float(thresholds.lag_seconds),
        None if scale is None or scale.chosen == AUTO else scale.chosen == LOG,
    )
    meaning = f"{glossary.LATENCY}\n\n{glossary.LATENCY_ALERT}"
    chart_card("Latency of scan sessions", chart, key, meaning, state.choose_range, scale=scale)


def throughput_card(view: DatabaseView, key: str) -> None:
    """Transactions per second and the ceilings of what ran."""
    viewer = state.viewer()
    span = viewer.axis(state.now())
    recent = sessions.reaching_into(view.history, span.start)
    buckets = sessions.throughput(recent, span.start, span.end, viewer.step)
    steps = ceiling_steps(view.capture_runs, view.capture_job, view.history)
    chart = transactions_chart(buckets, steps, span)
    meaning = glossary.THROUGHPUT + "\n\nCeiling: " + glossary.CEILING
    chart_card("Throughput and its ceiling", chart, key, meaning, state.choose_range)


def commands_card(view: DatabaseView, key: str) -> None:
    """Commands per second."""
    viewer = state.viewer()
    span = viewer.axis(state.now())
    recent = sessions.reaching_into(view.history, span.start)
    buckets = sessions.throughput(recent, span.start, span.end, viewer.step)
    meaning = "Row changes captured per second."
    chart_card("Commands captured", commands_chart(buckets, span), key, meaning, state.choose_range)


def empty_scans_card(view: DatabaseView, key: str) -> None:
    """Runs of empty scans."""
    span = state.viewer().axis(state.now())
    runs = sessions.empty_runs(sessions.reaching_into(view.history, span.start), span.start)
    chart = empty_scans_chart(runs, span)
    chart_card("Empty scans in a row", chart, key, glossary.EMPTY_SCANS, state.choose_range)
