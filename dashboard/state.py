"""What a page needs at hand: the engine, the snapshot, operations, and how this viewer looks at them.

One engine, one snapshot feed and one set of operations for the process, whoever looks; the
viewer's choices (database, range, zone, live) are in the URL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import wraps

import streamlit as st

from dashboard.charts.chart import TimeRange
from dashboard.console import Consoles, TabConsole
from dashboard.dialogs import follow_dialog
from dashboard.format import Zone, zone_info
from dashboard.operations import Operations
from dashboard.sessions import align_up, bucket_seconds
from dashboard.snapshot import DatabaseView, Snapshot, SnapshotFeed
from engine.engine import Engine
from engine.settings import Settings

RANGES = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
}
INTERVALS = {"2s": 2.0, "5s": 5.0, "10s": 10.0, "30s": 30.0, "paused": None}
CONSOLES_AT_ONCE = 8
"""Scripts that run at the same time; more wait."""
DEFAULT_INTERVAL = "5s"
DEFAULT_RANGE = "15m"


@st.cache_resource(show_spinner=False)
def engine() -> Engine:
    """The one engine of this process, a client of the home that the settings name."""
    return Engine.open(Settings())


@st.cache_resource(show_spinner=False)
def feed() -> SnapshotFeed:
    """The one snapshot feed of this process."""
    return SnapshotFeed(engine)


@st.cache_resource(show_spinner=False)
def operations() -> Operations:
    """The background operations of this process."""
    return Operations()


@st.cache_resource(show_spinner=False)
def consoles() -> Consoles:
    """The T-SQL consoles that are open."""
    return Consoles()


@st.cache_resource(show_spinner=False)
def console_runs() -> Operations:
    """Runs of consoles: apart, so that scripts that last never hold up what pages read."""
    return Operations(CONSOLES_AT_ONCE)


@st.cache_resource(show_spinner=False, scope="session", on_release=lambda console: consoles().close(console))
def console(database: str) -> TabConsole:
    """This tab's console of a database; closed when the tab is gone."""
    return consoles().open(engine(), database)


def now() -> datetime:
    """The time pages go by."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Viewer:
    """One viewer's choices. ``interval`` is None while paused; ``local`` is the browser's time zone."""

    database: str | None
    span: timedelta
    zone: Zone
    local: tzinfo
    interval: float | None

    @property
    def axis_zone(self) -> tzinfo:
        """The zone of chart axes (ages are no axis)."""
        return UTC if self.zone is Zone.UTC else self.local

    @property
    def step(self) -> int:
        """Seconds of a chart's bucket over this range."""
        return bucket_seconds(self.span)

    def axis(self, moment: datetime) -> TimeRange:
        """The range up to ``moment``, its end rounded up to a bucket so that charts stand still between."""
        end = align_up(moment, self.step)
        return TimeRange(end - self.span, end, self.axis_zone)


def viewer() -> Viewer:
    """The choices in the header, which are in the URL."""
    chosen = st.session_state
    return Viewer(
        database=chosen.get("db"),
        span=RANGES[chosen.get("range") or DEFAULT_RANGE],
        zone=Zone(chosen.get("tz") or Zone.UTC),
        local=zone_info(st.context.timezone),
        interval=INTERVALS[chosen.get("live") or DEFAULT_INTERVAL],
    )


def snapshot() -> Snapshot:
    """The newest picture of all databases."""
    return feed().current()


def selected() -> DatabaseView | None:
    """The viewer's database in the newest picture; None when there is none at all."""
    return snapshot().database(viewer().database)


def live(body: Callable[[], None], at_once: bool = False) -> None:
    """Draws ``body`` now and again at the viewer's interval (at most three of these on a page).

    ``at_once``: something is being read that should show as soon as it is there.
    """

    @wraps(body)  # the fragment is known by the body's name
    def tick() -> None:
        follow_dialog()
        body()

    st.fragment(tick, run_every=0.5 if at_once else viewer().interval)()


def changed() -> None:
    """After an action: takes a new picture at once, so that the page shows its effect."""
    feed().refresh()


def go_to(page: str, parameters: Mapping[str, str]) -> None:
    """Switches to another page with these URL parameters (none of the header's: those stay as they are)."""
    st.switch_page(st.session_state["pages"][page], query_params=dict(parameters))
