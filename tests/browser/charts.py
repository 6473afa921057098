"""Plotly's charts in a browser."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, Position, expect

from tests.browser.controls import expect_settled


def drag(page: Page, chart: Locator, start: float, end: float) -> None:
    """Drags over the chart's plane from one share of its width to another."""
    plane = chart.locator(".nsewdrag").first
    expect(plane).to_be_attached()
    expect_settled(page)
    plane.hover()  # once it stands still: what is drawn above it may still move it
    box = plane.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * start, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * (start + end) / 2, middle, steps=4)
    page.mouse.move(box["x"] + box["width"] * end, middle, steps=4)
    page.mouse.up()


def click_cell(chart: Locator, lane: str) -> None:
    """Clicks the first cell of a heat map's lane that has a value."""
    expect(chart.locator(".nsewdrag").first).to_be_attached()
    x, y = chart.evaluate(
        """(plot, lane) => {
          const cells = plot.data.at(-1)
          const column = cells.z[cells.y.indexOf(lane)].findIndex(Boolean)
          const { xaxis, yaxis } = plot._fullLayout
          return [xaxis._offset + xaxis.d2p(cells.x[column]), yaxis._offset + yaxis.d2p(lane)]
        }""",
        lane,
    )
    chart.hover(position={"x": x, "y": y})
    expect(chart.locator(".hoverlayer text").first).to_be_attached()
    chart.click(position={"x": x, "y": y})


def point_at(chart: Locator, trace: int | str) -> Position:
    """Moves the pointer to the first point of a trace, by number or name; where it is, once explained."""
    expect(chart.locator(".nsewdrag").first).to_be_attached()
    x, y = chart.evaluate(
        """(plot, trace) => {
          const { x, y } = plot.data[trace] ?? plot.data.find((each) => each.name === trace)
          const { xaxis, yaxis } = plot._fullLayout
          return [xaxis._offset + xaxis.d2p(x[0]), yaxis._offset + yaxis.d2p(y[0])]
        }""",
        trace,
    )
    place: Position = {"x": x, "y": y}
    chart.hover(position=place)
    expect(chart.locator(".hoverlayer text").first).to_be_attached()
    return place


def click_point(chart: Locator, trace: int) -> None:
    """Clicks the first point of a trace."""
    chart.click(position=point_at(chart, trace))


def click_lane(chart: Locator, capture_instance: str, by_name: bool = False) -> None:
    """Clicks the longest bar of an instance in the validity timeline, or its name beside it."""
    expect(chart.locator(".nsewdrag").first).to_be_attached()
    x, y = chart.evaluate(
        """(plot, [instance, byName]) => {
          const { xaxis, yaxis } = plot._fullLayout
          const lane = yaxis.ticktext.indexOf(instance)
          const bars = plot.data.filter((each) => each.type === "bar")
            .flatMap(({ base, x, y }) => x.map((length, bar) => ({ base: base[bar], length, lane: y[bar] })))
            .filter((each) => each.lane === lane).sort((one, other) => other.length - one.length)
          const beside = xaxis._offset - 30
          const middle = () => xaxis._offset + xaxis.d2p(xaxis.d2c(bars[0].base) + bars[0].length / 2)
          return [byName ? beside : middle(), yaxis._offset + yaxis.d2p(lane)]
        }""",
        [capture_instance, by_name],
    )
    place: Position = {"x": x, "y": y}
    chart.hover(position=place)
    if not by_name:
        expect(chart.locator(".hoverlayer text").first).to_be_attached()
    chart.click(position=place)
