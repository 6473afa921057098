"""What Plotly's charts draw in a browser, read from their figures; their time axes are in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from playwright.sync_api import Locator, expect

from dashboard.charts.chart import TimeRange


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a chart with its time axis in UTC draws: the pieces of its last trace, and its shapes."""

    pieces: list[list[datetime]]
    shapes: list[dict[str, Any]]

    def bands(self) -> list[tuple[str, str]]:
        """Where the chart is grey."""
        return [(each["x0"], each["x1"]) for each in self.shapes if each.get("name") == "gap"]

    def dashed(self) -> list[str]:
        """Where it has a dashed line."""
        lines = [each for each in self.shapes if each["type"] == "line"]
        return [each["x0"] for each in lines if each["line"]["dash"] == "dash"]


def drawn(chart: Locator) -> Drawn:
    """What a chart draws at one moment."""
    expect(chart.locator(".nsewdrag").first).to_be_attached()
    found = chart.evaluate(
        """({data, layout}) => {
          const {x, y} = data.at(-1)
          return {points: x.map((at, index) => [at, y[index]]), shapes: layout.shapes ?? []}
        }"""
    )
    pieces: list[list[datetime]] = [[]]
    for at, value in found["points"]:
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append(datetime.fromisoformat(at).replace(tzinfo=UTC))
    return Drawn([piece for piece in pieces if piece], found["shapes"])


def at(moment: datetime) -> str:
    """A moment as a chart in UTC has it."""
    return TimeRange(moment, moment).at(moment)
