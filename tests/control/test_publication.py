"""Publishing: all or nothing, only with a current token, and announced."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import psycopg
import pytest

from engine.control import PUBLISHED, ControlDatabase, Publication
from engine.errors import LeaseLost
from engine.model.job import CaptureParameters, JobType
from engine.model.lsn import Lsn
from engine.sources.base import LogIdentity
from tests.control.conftest import an_instance
from tests.monitoring.sessions import a_session

IDENTITY = LogIdentity("7391", 1, "highwater_1")
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def a_publication(token: int, position: int = 100, **values: object) -> Publication:
    lsn = Lsn.at(position)
    whole = Publication("hr", token, lsn, lsn, lsn, NOON, IDENTITY)
    return replace(whole, **values)


@pytest.fixture
def token(control: ControlDatabase) -> int:
    lease = control.leases.acquire("hr", "agent", 30)
    assert lease is not None
    return lease.token


def test_positions_move_together(control, token):
    control.publish(a_publication(token, 100))
    marks = control.watermarks.get("hr")
    assert (marks.high, marks.checkpoint, marks.scanned) == (Lsn.at(100),) * 3
    assert marks.last_commit_time == NOON
    assert marks.published_at is not None
    assert control.watermarks.identity("hr") == IDENTITY


def test_none_keeps_the_value_there_is(control, token):
    control.publish(a_publication(token, 100))
    control.publish(a_publication(token, 200, high=None, checkpoint=None, last_commit_time=None))
    marks = control.watermarks.get("hr")
    assert (marks.high, marks.scanned, marks.last_commit_time) == (Lsn.at(100), Lsn.at(200), NOON)


def test_a_stale_token_publishes_nothing(control, token):
    control.publish(a_publication(token, 100))
    control.leases.acquire("hr", "agent", 30)
    with pytest.raises(LeaseLost):
        control.publish(a_publication(token, 200))
    assert control.watermarks.get("hr").high == Lsn.at(100)


def test_without_any_lease_nothing_is_published(control):
    with pytest.raises(LeaseLost):
        control.publish(a_publication(1))


def test_a_recognised_instance_gets_its_start_lsn(control, token):
    with control.instances.add(an_instance()):
        pass
    control.publish(a_publication(token, recognised=(replace(an_instance(), start_lsn=Lsn.at(90)),)))
    assert control.instances.get("hr", "hr_department") == replace(an_instance(), start_lsn=Lsn.at(90))


def test_a_start_lsn_once_set_stays(control, token):
    for position in (90, 95):
        recognised = (replace(an_instance(), start_lsn=Lsn.at(position)),)
        control.publish(a_publication(token, recognised=recognised))
    assert control.instances.list("hr")[0].start_lsn == Lsn.at(90)


def test_the_log_restores_an_instance_whose_row_is_lost(control, token):
    instance = replace(an_instance(), start_lsn=Lsn.at(90))
    control.publish(a_publication(token, recognised=(instance,)))
    assert control.instances.list("hr") == [instance]
    jobs = {(job.job_type, job.wanted) for job in control.jobs.list("hr")}
    assert jobs == {(JobType.CAPTURE, True), (JobType.CLEANUP, False)}


def test_the_log_restores_no_job_that_was_dropped(control, token):
    with control.instances.add(an_instance(1), CaptureParameters()):
        pass
    instance = replace(an_instance(2, "hr_other", "other"), source_object_id=2, start_lsn=Lsn.at(90))
    control.publish(a_publication(token, recognised=(instance,)))
    assert [job.job_type for job in control.jobs.list("hr")] == [JobType.CAPTURE]


def test_the_log_does_not_bring_back_a_dropped_instance(control, token):
    with control.instances.add(an_instance()):
        pass
    with control.instances.remove("hr", [1]):
        pass
    control.publish(a_publication(token, recognised=(replace(an_instance(), start_lsn=Lsn.at(90)),)))
    assert control.instances.list("hr") == []


def test_the_log_does_not_bring_back_an_instance_that_is_being_dropped(control, control_dsn, token):
    with control.instances.add(an_instance()):
        pass
    met = a_publication(token, recognised=(replace(an_instance(), start_lsn=Lsn.at(90)),))
    with ThreadPoolExecutor(1) as pool:
        with control.instances.remove("hr", [1]):
            published = pool.submit(control.publish, met)
            until_it_waits(control_dsn, published)
        published.result()
    assert control.instances.list("hr") == []
    control.publish(a_publication(token, ended=(1,)))
    assert list(control.instances.dropped()) == []


def until_it_waits(dsn, published):
    """Until the publication waits for another's transaction, or has not done so."""
    waiting = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not published.done() and not connection.execute(waiting).fetchone()[0]:
            pass


def test_the_log_does_not_bring_back_an_instance_whose_name_is_another_s(control, token):
    with control.instances.add(an_instance(2)):
        pass
    control.publish(a_publication(token, recognised=(replace(an_instance(1), start_lsn=Lsn.at(90)),)))
    assert control.instances.list("hr") == [an_instance(2)]


def test_an_ended_instance_leaves_nothing(control, token):
    with control.instances.add(an_instance(), CaptureParameters()):
        pass
    control.publish(a_publication(token, ended=(1,)))
    assert control.instances.list("hr") == []
    assert list(control.instances.dropped()) == []
    assert control.jobs.list("hr") == []


def test_a_publication_is_announced(control, token):
    with control.listen(PUBLISHED) as listener:
        control.publish(a_publication(token))
        news = listener.wait(60)
    assert news is not None
    assert (news.channel, news.payload) == (PUBLISHED, "hr")


def test_the_session_is_published_with_the_positions(control, token):
    number = control.sessions.begin("hr", NOON)
    control.publish(a_publication(token, session=a_session(number, tran_count=3)))
    assert [s.tran_count for s in control.sessions.list("hr", 10)] == [3]
    assert control.sessions.aggregate("hr").tran_count == 3
