"""The validity timeline as a card: what is in sight by itself, and where a click leads."""

from __future__ import annotations

from collections.abc import Collection

from dashboard import glossary, state
from dashboard.charts.validity import in_order, validity_chart
from dashboard.components.chart_card import chart_card
from dashboard.components.go_to import leave_for
from dashboard.going import Target
from dashboard.lanes import lanes, timeline
from dashboard.snapshot import DatabaseView


def validity_card(
    view: DatabaseView,
    key: str,
    title: str = "Validity intervals",
    instances: Collection[str] | None = None,
) -> None:
    """Validity intervals of these capture instances; None: of all.

    It spans what there is to see, days mostly, and not the header's range, which is of sessions and a day at
    most: so what is dragged zooms this chart alone. A click on a lane opens its instance on page Tables.
    """
    now, viewer = state.now(), state.viewer()
    shown = [lane for lane in lanes(view, now) if instances is None or lane.capture_instance in instances]
    next_cleanup = None if view.cleanup_job is None else view.cleanup_job.next_run
    span = timeline(shown, now, viewer.axis_zone, next_cleanup)
    chart = validity_chart(shown, span, now, viewer.axis(now), next_cleanup, view.pauses)
    names = [lane.capture_instance for lane in in_order(shown)]

    def open_lane(_time: str, place: str) -> None:
        lane = round(float(place))
        if 0 <= lane < len(names):
            leave_for(Target(names[lane], "tables", {"t_ci": names[lane]}, view.name))

    chart_card(title, chart, key, glossary.VALIDITY, on_point=open_lane)
