"""What a page needs at hand: the engine, the snapshot, operations, and how this viewer looks at them.

One engine, one snapshot feed and one set of operations for the process, whoever looks; the
viewer's choices (database, range, zone, live) are in the URL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import wraps

import streamlit as st

from dashboard.charts.chart import TimeRange
from dashboard.components.range_picker import RangePicker
from dashboard.console import TabConsole
from dashboard.consoles import Consoles
from dashboard.dialogs import follow_dialog
from dashboard.downloads import Downloads
from dashboard.format import Zone, zone_info
from dashboard.identity import connection_of_tab, who
from dashboard.operations import Operations, OwnOperations
from dashboard.sessions import align, align_up, bucket_seconds
from dashboard.snapshot import HISTORY, DatabaseView, Snapshot, SnapshotFeed
from engine.engine import Engine
from engine.errors import ControlUnreachable
from engine.model.user import User
from engine.settings import Settings

LEAVING = "g_leaving"
"""In the session's state: where a callback wants to go, until the app's own run goes there."""
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
SOON = 0.5
"""Seconds between two looks at what is awaited."""
DEFAULT_RANGE = "15m"
RANGE = RangePicker("range", RANGES, DEFAULT_RANGE)
"""The header's range."""


@st.cache_resource(show_spinner=False)
def home_engine() -> Engine:
    """The one engine of this process, a client of the home that the settings name. For no page to use."""
    return Engine.open(Settings())


def engine() -> Engine:
    """The engine as this viewer may use it: what their role does not allow raises ExecuteDenied.

    Asked for in a page's own thread; background work takes it along.
    """
    return home_engine().acting_as(who())


_USER = "user_of_this_run"


def user() -> User:
    """This viewer as this run, or this tick, found them. The engine asks for itself at each call."""
    found: User | None = st.session_state.get(_USER)
    return found if found is not None and found.name == _name() else look_up_user()


def look_up_user() -> User:
    """This viewer with the role and principal of now. Raises ControlUnreachable."""
    found = st.session_state[_USER] = engine().user()
    return found


def _name() -> str:
    known = who()
    return known if isinstance(known, str) else known.name


def _may_stay() -> bool:
    """Whether this viewer still has a role; not, too, where nobody can tell."""
    try:
        return look_up_user().role is not None
    except ControlUnreachable:
        return False


def lacking(method: str, **arguments: object) -> str | None:
    """Why this viewer may not call that method of the engine; None when they may."""
    viewer_, least = user(), home_engine().least_role(method, **arguments)
    return None if viewer_.may(least) else f"Needs the role {least}; yours is {viewer_.role or 'none'}."


@st.cache_resource(show_spinner=False)
def feed() -> SnapshotFeed:
    """The one snapshot feed of this process."""
    return SnapshotFeed(home_engine)


@st.cache_resource(show_spinner=False)
def all_operations() -> Operations:
    """The background operations of this process."""
    return Operations(prepare=Engine.prepare_queries)


def operations() -> OwnOperations:
    """Those that this viewer sees: who reads with the same rights shares what was read."""
    viewer_ = user()
    return all_operations().of(viewer_.name, "" if viewer_.reads_as is None else f"as {viewer_.reads_as}")


@st.cache_resource(show_spinner=False)
def consoles() -> Consoles:
    """The T-SQL consoles that are open."""
    return Consoles()


@st.cache_resource(show_spinner=False)
def downloads() -> Downloads:
    """Files that tabs asked for."""
    return Downloads()


@st.cache_resource(show_spinner=False)
def console_runs() -> Operations:
    """Runs of consoles: apart, so that scripts that last never hold up what pages read."""
    return Operations(CONSOLES_AT_ONCE, Engine.prepare_queries)


@st.cache_resource(show_spinner=False)
def dialog_runs() -> Operations:
    """What confirmed dialogs do: apart, so that reads that last never keep anybody from stopping a job."""
    return Operations()


_CONSOLES = "consoles_of_this_tab"


def console(database: str) -> TabConsole:
    """This tab's console of a database: the one it had, until it is gone with the tab."""
    return _own_console("console", database)


def lesson_console(database: str) -> TabConsole:
    """This tab's session for the tour: apart from the console, whose transaction may be open."""
    return _own_console("lesson", database)


def _own_console(kind: str, database: str) -> TabConsole:
    tokens: dict[tuple[str, str], str] = st.session_state.setdefault(_CONSOLES, {})
    known = consoles().get(tokens.get((kind, database), ""))
    if known is not None:
        return known
    opened = consoles().open(engine(), database, connection_of_tab())
    tokens[kind, database] = opened.token
    return opened


@st.cache_resource(show_spinner=False)
def workloads() -> Operations:
    """Workloads of the demo that run."""
    return Operations()


def now() -> datetime:
    """The time pages go by."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Viewer:
    """One viewer's choices. ``interval`` is None while paused; ``local`` is the browser's time zone.

    own: a range of one's own (UTC), of length ``span``; None: the last ``span``, whenever that is.
    """

    database: str | None
    span: timedelta
    zone: Zone
    local: tzinfo
    interval: float | None
    own: tuple[datetime, datetime] | None = None

    @property
    def axis_zone(self) -> tzinfo:
        """The zone of chart axes (ages are no axis)."""
        return UTC if self.zone is Zone.UTC else self.local

    @property
    def step(self) -> int:
        """Seconds of a chart's bucket over this range."""
        return bucket_seconds(self.span)

    def axis(self, moment: datetime) -> TimeRange:
        """What charts span: the own range in whole buckets, else that up to ``moment``."""
        if self.own is None:
            return self.recent(moment)
        start, end = self.own
        last = align_up(end - timedelta(microseconds=1), self.step)
        return TimeRange(align(start, self.step), last, self.axis_zone)

    def recent(self, moment: datetime) -> TimeRange:
        """A range up to ``moment``, its end rounded up to a bucket so that charts stand still between."""
        end = align_up(moment, self.step)
        return TimeRange(end - self.span, end, self.axis_zone)


def viewer() -> Viewer:
    """The choices in the header, which are in the URL. A range that is none falls back to the default."""
    chosen = st.session_state
    found = Viewer(
        database=chosen.get("db"),
        span=RANGES.get(RANGE.chosen, RANGES[DEFAULT_RANGE]),
        zone=Zone(chosen.get("tz") or snapshot().settings.zone),
        local=zone_info(st.context.timezone),
        interval=INTERVALS[chosen.get("live") or DEFAULT_INTERVAL],
    )
    if not RANGE.is_own:
        return found
    try:
        start, end = own_range(found.axis_zone)
    except ValueError:
        return found  # the header says why
    return replace(found, span=end - start, own=(start, end))


def own_range(zone: tzinfo) -> tuple[datetime, datetime]:
    """The range that was typed in the header. ValueError says why it can't be shown."""
    moment = now()
    start, end = RANGE.range(moment, zone)
    if start < moment - HISTORY - timedelta(minutes=1):
        raise ValueError("Here the last 24 hours are known; what was before is on the page History")
    return start, end


def choose_range(shown: tuple[str, str] | None) -> None:
    """What was dragged in a chart becomes the header's range; None: the default one again."""
    RANGE.choose(None if shown is None else viewer().axis(now()).read_both(shown))


def snapshot() -> Snapshot:
    """The newest picture of all databases."""
    return feed().current()


def selected() -> DatabaseView | None:
    """The viewer's database in the newest picture; None when there is none at all."""
    return feed().look_at(viewer().database)


class _Part:
    """A part of a page with a timer, while it is drawn."""

    def __init__(self) -> None:
        self.is_awaited = False


_PART: ContextVar[_Part | None] = ContextVar("part", default=None)
_HASTE = "parts_in_haste"


_PAGE: ContextVar[str] = ContextVar("page", default="")


def begin_page(name: str) -> None:
    """Says which page this run draws."""
    _PAGE.set(name)


def of_page(body: Callable[[], None]) -> Callable[[], None]:
    """The body of a part with a timer, under a name that no other page's part has: see `late_reruns`."""
    body.__qualname__ = f"{body.__qualname__} on {_PAGE.get()}"
    return body


def live(body: Callable[[], None], at_once: bool = False) -> None:
    """Draws ``body`` now and again at the viewer's interval (at most three of these on a page).

    ``at_once``: something is being read that should show as soon as it is there. What is found out only
    while the body is drawn is told by `look_soon`: no timer of its own runs inside a part with a timer,
    because a redraw of the outer one would leave what the inner one has just drawn without its place.
    """

    drawn = RANGE.chosen
    part = f"{body.__module__}.{body.__qualname__}"
    in_haste: set[str] = st.session_state.setdefault(_HASTE, set())
    is_hurried = part in in_haste

    @wraps(body)  # the fragment is known by the body's name
    def tick() -> None:
        follow_dialog()
        if LEAVING in st.session_state:
            st.rerun(scope="app")  # as with a dialog: the click may have come with any part's request
        if RANGE.key in st.session_state and RANGE.chosen != drawn:
            st.rerun(scope="app")  # a chart was dragged: the header shows it
        if not _may_stay():
            st.rerun(scope="app")  # it says why
        if _is_awaited(body) != is_hurried and (is_hurried or not at_once):
            in_haste.symmetric_difference_update({part})
            st.rerun(scope="app")  # a timer's interval can be changed from without alone

    st.fragment(of_page(tick), run_every=SOON if at_once or is_hurried else viewer().interval)()


def _is_awaited(body: Callable[[], None]) -> bool:
    """Draws the body of a part; whether it waits for something."""
    part = _Part()
    token = _PART.set(part)
    try:
        body()
    finally:
        _PART.reset(token)
    return part.is_awaited


def look_soon() -> bool:
    """In a part with a timer: something is awaited, the next look comes soon. False: there is no timer."""
    part = _PART.get()
    if part is not None:
        part.is_awaited = True
    return part is not None


def changed() -> None:
    """After an action: takes a new picture at once, so that the page shows its effect."""
    feed().refresh()


def go_to(page: str, parameters: Mapping[str, str]) -> None:
    """Switches to another page with these URL parameters (none of the header's: those stay as they are)."""
    st.switch_page(st.session_state["pages"][page], query_params=dict(parameters))
