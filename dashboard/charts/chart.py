"""What every chart has: a figure, the takeaway for those who can't see it, and its numbers as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Protocol

import pandas as pd
import plotly.graph_objects as go


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure with its text alternative and the table behind it."""

    figure: go.Figure
    alt: str
    table: pd.DataFrame


@dataclass(frozen=True, slots=True)
class TimeRange:
    """What the x axis spans (UTC) and the zone its ticks are in."""

    start: datetime
    end: datetime
    zone: tzinfo = UTC

    def at(self, moment: datetime) -> str:
        """A moment as Plotly takes it: wall-clock time of the zone, without offset."""
        return moment.astimezone(self.zone).replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")

    def read(self, shown: str) -> datetime:
        """The moment (UTC) that Plotly calls so, with up to seven digits of a second or none."""
        day, _, time = shown.partition(" ")
        whole, _, part = time.partition(".")
        hour, minute, second = [*map(int, filter(None, whole.split(":"))), 0, 0, 0][:3]
        wall = datetime.fromisoformat(day).replace(
            hour=hour, minute=minute, second=second, microsecond=int((part + "000000")[:6])
        )
        return wall.replace(tzinfo=self.zone).astimezone(UTC)

    def read_both(self, shown: tuple[str, str]) -> tuple[datetime, datetime]:
        """Both ends of a range."""
        return self.read(shown[0]), self.read(shown[1])


def time_figure(span: TimeRange, height: int, y_title: str = "") -> go.Figure:
    """An empty figure with the common frame: tight margins, unified hover, crosshair, time on x.

    Colours of text and grid are left to the page, which knows whether it is light or dark.
    """
    # Given as a whole: `update_layout` takes six times as long, for every chart of every tick.
    return go.Figure(
        layout=go.Layout(
            template="none",
            height=height,
            margin={"l": 56, "r": 12, "t": 28, "b": 30},
            hovermode="x unified",
            dragmode="zoom",
            uirevision="keep",
            legend={
                "orientation": "h",
                "x": 0,
                "y": 1.02,
                "yanchor": "bottom",
                "xanchor": "left",
                "font": {"size": 12},
            },
            xaxis={
                "type": "date",
                "range": [span.at(span.start), span.at(span.end)],
                "showspikes": True,
                "spikemode": "across",
                "spikethickness": 1,
                "spikedash": "dot",
                "fixedrange": False,
                "ticklabelmode": "instant",
                "nticks": 8,
                "tickangle": 0,
            },
            yaxis={
                "rangemode": "tozero",
                "fixedrange": True,
                "nticks": 5,
                "title": {"text": y_title},
                "zeroline": False,
            },
        )
    )


def mark(figure: go.Figure, moment: str, colour: str, dash: str = "dot") -> None:
    """A vertical line through the whole chart."""
    figure.add_shape(
        type="line",
        x0=moment,
        x1=moment,
        y0=0,
        y1=1,
        yref="paper",
        line={"color": colour, "width": 1, "dash": dash},
    )


def note(figure: go.Figure, text: str) -> None:
    """One line in the middle of a chart that has nothing to draw: why it is empty."""
    figure.add_annotation(
        text=text, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False, font={"size": 13}, name="note"
    )


class Gap(Protocol):
    """A stretch of which nothing is known; without an end it goes on."""

    @property
    def start(self) -> datetime:
        """Where it begins."""

    @property
    def end(self) -> datetime | None:
        """Where it ends."""


def gap_bands(figure: go.Figure, gaps: Iterable[Gap], span: TimeRange) -> None:
    """Grey bands where nothing is known: neither a zero nor a line across."""
    for gap in gaps:
        start, end = max(gap.start, span.start), min(gap.end or span.end, span.end)
        if start < end:
            figure.add_shape(
                type="rect",
                x0=span.at(start),
                x1=span.at(end),
                y0=0,
                y1=1,
                yref="paper",
                line={"width": 0},
                fillcolor="#7A828C44",
                layer="below",
                name="gap",
            )
