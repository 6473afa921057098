"""The picture that viewers share: new for who begins to look; old, and named so, when none can be taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from dashboard.sessions import longest_rest
from dashboard.snapshot import ATTENTION, SnapshotFeed
from engine.engine import Engine
from engine.errors import ControlUnreachable
from tests.monitoring.sessions import a_session

Connect = Callable[[str], str]


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


def test_who_looks_after_a_while_sees_what_is_and_not_what_was(engine: Engine, connect: Connect) -> None:
    clock = Clock()
    feed = SnapshotFeed(lambda: engine, clock)
    assert feed.current().databases == ()
    connect("SELECT 1")
    clock.now += timedelta(hours=8)
    assert [view.name for view in feed.current().databases] == ["hr"]
    feed.close()


def test_without_a_new_picture_the_last_one_stays_with_the_reason(engine: Engine, connect: Connect) -> None:
    connect("SELECT 1")
    away = False

    def reach() -> Engine:
        if away:
            raise ControlUnreachable("gone")
        return engine

    feed = SnapshotFeed(reach)
    good = feed.current()
    away = True
    old = feed.refresh()
    assert (old.taken, old.databases) == (good.taken, good.databases)
    assert isinstance(old.failure, ControlUnreachable)
    away = False
    assert feed.refresh().failure is None
    feed.close()


def test_sessions_are_those_of_the_databases_that_somebody_looks_at(engine: Engine, tracked: str) -> None:
    clock, control = Clock(), engine._control
    feed = SnapshotFeed(lambda: engine, clock)

    def scan() -> int:
        number = control.sessions.begin(tracked, clock.now)
        ended = replace(a_session(number), start_time=clock.now, end_time=clock.now)
        control.sessions.save(tracked, ended)
        return number

    first = scan()
    assert [view.history for view in feed.refresh().databases] == [()]
    seen = feed.look_at(None)
    assert seen is not None
    assert [session.session_id for session in seen.history] == [first]
    assert all(view.has_sessions for view in feed.current().databases)  # others need not read them again
    second = scan()
    [view] = feed.refresh().databases
    assert {session.session_id for session in view.history} == {first, second}
    clock.now += 2 * ATTENTION
    [view] = feed.refresh().databases
    assert not view.has_sessions
    feed.close()


def test_pauses_of_capture_are_read_on_and_those_that_are_known_stay(engine: Engine, tracked: str) -> None:
    clock, control = Clock(), engine._control
    feed = SnapshotFeed(lambda: engine, clock)
    begun = clock.now

    def scan_after(hours: float) -> list[float]:
        """How long each pause is that is known once a session of a second was captured."""
        clock.now += timedelta(hours=hours)
        session = a_session(control.sessions.begin(tracked, begun), tran_count=1)
        control.sessions.save(tracked, replace(session, start_time=clock.now, end_time=clock.now))
        feed.look_at(None)
        [view] = feed.refresh().databases
        assert view.pauses.known_since == begun
        return [(pause.end - pause.start) / timedelta(hours=1) for pause in view.pauses.pauses]

    assert scan_after(0) == []
    assert scan_after(0.01) == []
    assert scan_after(5) == [5]
    assert scan_after(30) == [5, 30]  # by now the first sessions are no longer in the picture
    assert scan_after(0.5) == [5, 30, 0.5]
    feed.close()

    clock.now += timedelta(hours=40)  # who begins to look now meets no session of the last day
    late = SnapshotFeed(lambda: engine, clock)
    view = late.look_at(None)
    assert view is not None
    assert (view.history, len(view.pauses.pauses)) == ((), 3)
    late.close()


def test_a_pause_is_longer_than_the_polls_that_lie_between_scans() -> None:
    assert longest_rest(5) == timedelta(minutes=1)
    assert longest_rest(600) == timedelta(minutes=30)
