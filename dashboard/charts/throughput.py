"""Throughput of capture: transactions per second against the ceilings of what ran."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from dashboard import format as fmt
from dashboard import theme
from dashboard.ceilings import CeilingStep, utilisation
from dashboard.charts.chart import Chart, TimeRange, note, time_figure
from dashboard.sessions import Bucket

_COMMANDS = theme.CATEGORICAL[5]


def transactions_chart(buckets: Sequence[Bucket], steps: Sequence[CeilingStep], span: TimeRange) -> Chart:
    """Captured transactions per second, with the ceiling ``maxtrans * maxscans / pollinginterval``.

    steps: the ceilings of runs; where none ran there is none. One far above everything drawn stays out of
    the scale and is named in the legend, since it would press the series flat.
    """
    values, used = [bucket.transactions for bucket in buckets], utilisation(buckets, steps)
    figure = time_figure(span, 220, "tran/s")
    series = _series(buckets, values, span, "transactions/s", theme.ACCENT, "tran/s")
    series.update(
        customdata=["" if share is None else f", {fmt.share(share)} of the ceiling" for share in used],
        hovertemplate="%{y:,.1f} tran/s%{customdata}<extra></extra>",
    )
    figure.add_trace(series)
    known = [value for value in values if value is not None]
    shown = [
        step for step in steps if step.start <= span.end and (step.end is None or step.end >= span.start)
    ]
    peak = max((share for share in used if share is not None), default=None)
    if any(step.ceiling is not None for step in shown):
        figure.add_trace(_ceiling(shown, span, max(known, default=0.0), peak))
    figure.add_trace(_area(buckets, values, span, theme.ACCENT))
    if not known:
        note(figure, "No scan in this range")
    table = _table(buckets, span).assign(**{"of the ceiling": used})
    return Chart(figure, _alt(known, shown, peak), table)


def commands_chart(buckets: Sequence[Bucket], span: TimeRange) -> Chart:
    """Captured commands (row changes) per second: never on one axis with transactions."""
    values = [bucket.commands for bucket in buckets]
    figure = time_figure(span, 220, "cmd/s")
    figure.add_trace(_series(buckets, values, span, "commands/s", _COMMANDS, "cmd/s"))
    figure.add_trace(_area(buckets, values, span, _COMMANDS))
    known = [value for value in values if value is not None]
    if not known:
        note(figure, "No scan in this range")
    alt = (
        f"Captured commands per second: at most {fmt.rate(max(known), 'cmd/s')}."
        if known
        else "No scan in this range."
    )
    return Chart(figure, alt, _table(buckets, span))


def _series(
    buckets: Sequence[Bucket],
    values: Sequence[float | None],
    span: TimeRange,
    name: str,
    colour: str,
    unit: str,
) -> go.Scatter:
    return go.Scatter(
        x=[span.at(bucket.start) for bucket in buckets],
        y=[None if value is None else round(value, 3) for value in values],
        name=name,
        mode="lines",
        line={"color": colour, "width": 1.8, "shape": "hv"},
        connectgaps=False,
        hovertemplate="%{y:,.1f} " + unit + "<extra></extra>",
        showlegend=True,
    )


def _area(
    buckets: Sequence[Bucket], values: Sequence[float | None], span: TimeRange, colour: str
) -> go.Scatter:
    """What is below the line, by itself: Plotly fills right across a series' gaps."""
    return go.Scatter(
        x=[span.at(bucket.start) for bucket in buckets],
        y=[round(value or 0, 3) for value in values],
        mode="lines",
        line={"width": 0, "shape": "hv"},
        fill="tozeroy",
        fillcolor=colour + "26",
        hoverinfo="skip",
        showlegend=False,
    )


FAR = 4
"""How many times above all that is drawn a ceiling may be, to be drawn itself."""


def _ceiling(steps: Sequence[CeilingStep], span: TimeRange, most: float, peak: float | None) -> go.Scatter:
    """A level for each run; the line ends where the run did."""
    x: list[str] = []
    y: list[float | None] = []
    for step in steps:
        is_drawn = step.ceiling is not None and step.ceiling <= max(most, 1) * FAR
        start, end = max(step.start, span.start), min(step.end or span.end, span.end)
        x += [span.at(start), span.at(end), span.at(end)]
        y += [step.ceiling, step.ceiling, None] if is_drawn else [None, None, None]
    return go.Scatter(
        x=x,
        y=y,
        name=_ceiling_name([step.ceiling for step in steps if step.ceiling is not None], most, peak),
        mode="lines",
        line={"color": theme.FAILING, "width": 1.5, "dash": "dash", "shape": "hv"},
        connectgaps=False,
        hoverinfo="skip",
        showlegend=True,
    )


def _ceiling_name(ceilings: Sequence[float], most: float, peak: float | None) -> str:
    """The newest, how much of what held was used at the peak, and whether it, or another, is not drawn."""
    far = [ceiling > max(most, 1) * FAR for ceiling in ceilings]
    scale = "off scale" if far[-1] else "earlier ones off scale" if any(far) else ""
    used = "" if peak is None else f"peak {fmt.share(peak)} used"
    words = ", ".join(filter(None, (used, scale)))
    return f"ceiling {fmt.rate(ceilings[-1], 'tran/s')}" + (f" ({words})" if words else "")


def _alt(known: Sequence[float], steps: Sequence[CeilingStep], peak: float | None) -> str:
    if not known:
        return "No scan in this range."
    text = f"Captured transactions per second: at most {fmt.rate(max(known), 'tran/s')}"
    if not steps:
        return f"{text}."
    if steps[-1].ceiling is None:
        return f"{text}, no ceiling with polling interval 0."
    share = "" if peak is None else f" ({fmt.share(peak)} used at the peak)"
    return f"{text}, ceiling {fmt.rate(steps[-1].ceiling, 'tran/s')}{share}."


def _table(buckets: Sequence[Bucket], span: TimeRange) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "from": [span.at(bucket.start) for bucket in buckets],
            "transactions/s": [bucket.transactions for bucket in buckets],
            "commands/s": [bucket.commands for bucket in buckets],
        }
    )
