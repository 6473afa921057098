"""The charts of a database's scan sessions, drawn from a snapshot."""

from __future__ import annotations

from dashboard import glossary, sessions, state
from dashboard.charts.empty_scans import empty_scans_chart
from dashboard.charts.latency import latency_chart
from dashboard.charts.throughput import commands_chart, transactions_chart
from dashboard.charts.validity import Lane, validity_chart
from dashboard.components.chart_card import chart_card
from dashboard.format import lsn_long
from dashboard.snapshot import DatabaseView


def latency_card(view: DatabaseView, key: str) -> None:
    """Latency for each scan session."""
    viewer = state.viewer()
    span = viewer.axis(state.now())
    chart = latency_chart(
        sessions.latencies(view.history, span.start, span.end, viewer.step),
        sessions.empty_runs(view.history, span.start),
        view.errors,
        sessions.restarts(view.history),
        span,
    )
    chart_card("Latency of scan sessions", chart, key, glossary.LATENCY)


def throughput_card(view: DatabaseView, key: str) -> None:
    """Transactions per second and the ceiling of what runs."""
    viewer, job = state.viewer(), view.capture_job
    span = viewer.axis(state.now())
    running = job.running if job else None
    chart = transactions_chart(
        sessions.throughput(view.history, span.start, span.end, viewer.step),
        running.ceiling if running else None,
        span,
    )
    chart_card(
        "Throughput and its ceiling", chart, key, glossary.THROUGHPUT + "\n\nCeiling: " + glossary.CEILING
    )


def commands_card(view: DatabaseView, key: str) -> None:
    """Commands per second."""
    viewer = state.viewer()
    span = viewer.axis(state.now())
    buckets = sessions.throughput(view.history, span.start, span.end, viewer.step)
    chart_card("Commands captured", commands_chart(buckets, span), key, "Row changes captured per second.")


def empty_scans_card(view: DatabaseView, key: str) -> None:
    """Runs of empty scans."""
    span = state.viewer().axis(state.now())
    runs = sessions.empty_runs(view.history, span.start)
    chart_card("Empty scans in a row", empty_scans_chart(runs, span), key, glossary.EMPTY_SCANS)


def validity_card(view: DatabaseView, key: str) -> None:
    """Validity intervals of all capture instances."""
    viewer, now = state.viewer(), state.now()
    chart = validity_chart(lanes(view), viewer.axis(now), now)
    meaning = f"{glossary.LOW_WATERMARK}\n\n{glossary.HIGH_WATERMARK}"
    chart_card("Validity intervals", chart, key, meaning)


def lanes(view: DatabaseView) -> list[Lane]:
    """A lane for each capture instance. The low watermark's time is that of its enabling commit."""
    marks = view.watermarks
    return [
        Lane(
            capture_instance=instance.capture_instance,
            source_table=f"{instance.source_schema}.{instance.source_table}",
            low=instance.create_date if instance.start_lsn else None,
            high=marks.last_commit_time,
            captured_until=marks.published_at,
            low_lsn=lsn_long(instance.start_lsn),
            high_lsn=lsn_long(marks.high),
        )
        for instance in view.instances
    ]
