"""The figures in a row: each with its unit, what it means, and its recent course."""

from __future__ import annotations

import streamlit as st

from dashboard import format as fmt
from dashboard import glossary, sessions, state
from dashboard.snapshot import DatabaseView


def kpi_row(view: DatabaseView) -> None:
    """Latency, throughput, captured rows, high watermark, log held, tables."""
    viewer, now = state.viewer(), state.now()
    span = viewer.recent(now)  # figures are of now, whatever range charts show
    recent = sessions.reaching_into(view.history, span.start)
    buckets = sessions.throughput(recent, span.start, span.end, viewer.step)
    points = sessions.latencies(recent, span.start, span.end, viewer.step)
    total = sessions.aggregate(view.sessions)
    rate = sessions.recent_rate(buckets, max(2, 60 // viewer.step))
    grid = st.grid(6, min_column_width=170, gap="small")
    grid.metric(
        "Latency",
        fmt.duration(round(points[-1].latency, 2)) if points else fmt.DASH,
        help=glossary.LATENCY,
        border=True,
        height="stretch",
        chart_data=sessions.sparkline([point.latency for point in points]) or None,
    )
    grid.metric(
        "Throughput",
        fmt.rate(rate, "tran/s"),
        help=glossary.THROUGHPUT,
        border=True,
        height="stretch",
        chart_data=sessions.sparkline([bucket.transactions for bucket in buckets[:-1]]) or None,
    )
    grid.metric(
        "Captured",
        fmt.DASH if total is None else f"{fmt.number(total.command_count)} cmd",
        help=glossary.CAPTURED,
        border=True,
        height="stretch",
        chart_data=sessions.sparkline([bucket.commands for bucket in buckets[:-1]]) or None,
    )
    high = view.watermarks.last_commit_time
    grid.metric(
        "High watermark",
        fmt.ago(high, now),
        delta=fmt.lsn_short(view.watermarks.high),
        delta_color="off",
        delta_arrow="off",
        help=_high_help(view),
        border=True,
        height="stretch",
    )
    grid.metric(
        "Log held",
        fmt.DASH if view.slot is None else fmt.size(view.slot.retained_bytes),
        delta=None if view.slot is None else f"slot {view.slot.wal_status}",
        delta_color="off",
        delta_arrow="off",
        help=glossary.LOG_HELD,
        border=True,
        height="stretch",
    )
    grid.metric(
        "Tables",
        fmt.number(len({instance.source_object_id for instance in view.instances})),
        delta=fmt.plural(len(view.instances), "capture instance"),
        delta_color="off",
        delta_arrow="off",
        help=glossary.CAPTURED_TABLES,
        border=True,
        height="stretch",
    )


def _high_help(view: DatabaseView) -> str:
    if view.watermarks.high is None:
        return glossary.HIGH_WATERMARK
    time = fmt.moment(view.watermarks.last_commit_time)
    return f"{glossary.HIGH_WATERMARK}\n\n`{view.watermarks.high}`\n\n{time}"
