"""When no scan read a log, from what sessions and the job's history keep."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from engine.control import ControlDatabase
from engine.control.capture_runs import CaptureRun
from engine.control.leases import Lease
from engine.model.job import CaptureParameters, JobType, RunOutcome
from engine.model.scan_session import ScanPause
from tests.monitoring.sessions import START, a_session

MINUTE = timedelta(minutes=1)


def at(minutes: float) -> datetime:
    return START + minutes * MINUTE


class History:
    """What agents left of a database, in minutes from START."""

    def __init__(self, control: ControlDatabase) -> None:
        self.control = control
        self.agent = START
        control.jobs.add("hr", CaptureParameters(), wanted=True)
        self.job = control.jobs.get("hr", JobType.CAPTURE).job_id

    def session(self, start: float, end: float | None, **values: object) -> None:
        session = a_session(self.control.sessions.begin("hr", self.agent), **values)
        ended = None if end is None else at(end)
        self.control.sessions.save("hr", replace(session, start_time=at(start), end_time=ended))

    def run(self, start: float, end: float | None, outcome: RunOutcome = RunOutcome.STOPPED) -> None:
        lease = self.lease()
        ended = None if end is None else at(end)
        self.control.capture_runs.save(CaptureRun(self.job, at(start), {}, outcome, "", ended), lease)

    def lease(self) -> Lease:
        lease = self.control.leases.acquire("hr", "me", 60)
        assert lease is not None
        return lease

    def pauses(self, since: float = -60, longer_than: float = 1) -> list[tuple[float, float]]:
        found = self.control.pauses.since("hr", at(since), longer_than * MINUTE).pauses
        return [((each.start - START) / MINUTE, (each.end - START) / MINUTE) for each in found]

    def known_since(self, since: float) -> datetime | None:
        return self.control.pauses.since("hr", at(since), MINUTE).known_since


@pytest.fixture
def history(control: ControlDatabase) -> History:
    return History(control)


def test_a_pause_lies_between_two_sessions_also_of_different_agents(history: History) -> None:
    history.session(0, 1)
    history.session(1.5, 2)
    history.session(10, 11)
    history.agent = at(20)
    history.session(20, 21)
    assert history.pauses() == [(2, 10), (11, 20)]
    assert history.pauses(longer_than=8.5) == [(11, 20)]
    assert history.pauses(since=15) == [(11, 20)]
    assert history.pauses(since=20) == []


def test_scans_that_failed_read_nothing(history: History) -> None:
    history.session(0, 1)
    for minute in (2, 4, 6):
        history.session(minute, minute, failed_sessions_count=1)
    history.session(8, 9, failed_sessions_count=1, tran_count=3)
    history.session(9, 10)
    assert history.pauses() == [(1, 8)]


def test_a_session_that_was_cut_lasted_until_it_was_written_last(history: History) -> None:
    history.session(0, None)
    history.session(600_000, 600_001)
    [pause] = history.control.pauses.since("hr", START, MINUTE).pauses
    assert pause == ScanPause(pause.start, at(600_000))
    assert pause.start > at(1)


def test_where_empty_scans_share_a_session_the_job_s_history_knows(history: History) -> None:
    history.session(0, 30, empty_scan_count=9)
    history.run(0, 10)
    history.run(20, 30)
    assert history.pauses() == [(10, 20)]


def test_where_scans_were_called_meanwhile_sessions_tell_it(history: History) -> None:
    history.run(0, 10)
    history.session(0, 10)
    history.session(14, 15)
    history.session(20, 21)
    history.run(20, None, RunOutcome.RUNNING)
    assert history.pauses() == [(10, 14), (15, 20)]


def test_what_an_agent_that_was_killed_left_says_nothing_of_its_end(history: History) -> None:
    history.run(0, None, RunOutcome.RUNNING)
    history.run(20, 30)
    assert history.pauses() == []


def test_of_what_is_not_kept_nothing_is_known(history: History) -> None:
    assert history.known_since(0) is None
    history.session(10, 11)
    history.session(30, 31)
    assert history.known_since(0) == at(10)
    assert history.known_since(20) == at(10)
    assert history.known_since(40) == at(30)


def test_other_databases_have_their_own(history: History) -> None:
    history.control.sources.add("shop", "postgres", "postgresql:///shop")
    history.session(0, 1)
    history.session(20, 21)
    assert history.control.pauses.since("shop", START, MINUTE).pauses == ()
