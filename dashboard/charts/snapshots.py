"""Snapshots of a collection set over time: their rows, what failed, and gaps as bands."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from dashboard import format as fmt
from dashboard import theme
from dashboard.charts.chart import Chart, TimeRange, gap_bands, note, time_figure
from engine.model.collection import CollectionRun, HistoryBreak
from engine.model.job import RunOutcome


def snapshots_chart(runs: Sequence[CollectionRun], gaps: Sequence[HistoryBreak], span: TimeRange) -> Chart:
    """A point for each snapshot that counts at its rows, a cross for one that failed, a band for each gap."""
    shown = [run for run in runs if span.start <= run.snapshot_time <= span.end]
    good = [run for run in shown if run.outcome is RunOutcome.SUCCEEDED]
    bad = [run for run in shown if run.outcome in (RunOutcome.FAILED, RunOutcome.INTERRUPTED)]
    figure = time_figure(span, 200, "rows")
    gap_bands(figure, gaps, span)
    figure.add_trace(
        go.Scatter(
            x=[span.at(run.snapshot_time) for run in good],
            y=[run.rows for run in good],
            name="snapshots",
            mode="markers",
            marker={"size": 7, "color": theme.HEALTHY},
            customdata=[run.snapshot_id for run in good],
            hovertemplate="snapshot %{customdata}: %{y:,} rows<extra></extra>",
            showlegend=True,
        )
    )
    if bad:
        figure.add_trace(
            go.Scatter(
                x=[span.at(run.snapshot_time) for run in bad],
                y=[0] * len(bad),
                name="failed",
                mode="markers",
                marker={"symbol": "x", "size": 10, "color": theme.FAILING},
                customdata=[run.message[:120] for run in bad],
                hovertemplate="%{customdata}<extra></extra>",
                showlegend=True,
            )
        )
    if not shown:
        note(figure, "No snapshot in this range")
    inside = [gap for gap in gaps if gap.start < span.end and (gap.end is None or gap.end > span.start)]
    alt = f"{fmt.plural(len(good), 'snapshot')}, {len(bad)} failed, {fmt.plural(len(inside), 'gap')}."
    return Chart(figure, alt, _table(shown, span))


def _table(runs: Sequence[CollectionRun], span: TimeRange) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "snapshot_time": [span.at(run.snapshot_time) for run in runs],
            "snapshot_id": [run.snapshot_id for run in runs],
            "rows": [run.rows for run in runs],
            "outcome": [str(run.outcome) for run in runs],
        }
    )
