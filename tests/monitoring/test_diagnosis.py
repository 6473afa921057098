"""The verdict: each rule alone, over facts that are otherwise healthy."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.table_names import parse_table_name
from engine.errors import CapturedColumnChanged
from engine.model.client import Client, ClientForecast
from engine.model.job import CaptureParameters, Job, JobState, JobType
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanError
from engine.model.source_database import SourceDatabase
from engine.model.watermark import Watermarks
from engine.monitoring.diagnosis import DatabaseFacts, Verdict, diagnose, verdict_of
from engine.procedures.column_list import parse_column_list
from engine.sources.base import SlotState
from tests.control.conftest import an_instance
from tests.monitoring.sessions import a_session

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
RUNNING = Job(
    UUID(int=1),
    "hr",
    JobType.CAPTURE,
    CaptureParameters(),
    CaptureParameters(),
    True,
    JobState.RUNNING,
    LONG_AGO,
    "Running.",
)
SLOT = SlotState("highwater_hr", Lsn.at(100), Lsn.at(90), 1000, "reserved", None, 1)
HEALTHY = DatabaseFacts(
    database=SourceDatabase(1, "hr", "postgresql", "postgresql:///hr", True, LONG_AGO),
    instances=(an_instance(),),
    jobs=(RUNNING,),
    watermarks=Watermarks("hr", Lsn.at(90), Lsn.at(90), Lsn.at(100), NOW, NOW),
    latest=a_session(1, tran_count=1, latency=2),
    errors=(),
    slot=SLOT,
    log_end=Lsn.at(100),
    unreachable=None,
)


def found(agent_is_alive: bool = True, **differs: object):
    return diagnose([replace(HEALTHY, **differs)], agent_is_alive, NOW)


def only(verdict: Verdict, agent_is_alive: bool = True, **differs: object):
    [finding] = found(agent_is_alive, **differs)
    assert finding.verdict is verdict
    assert finding.fix
    return finding


def test_nothing_is_wrong():
    assert found() == ()
    assert verdict_of(()) is Verdict.HEALTHY


def test_a_database_that_is_not_enabled_is_nothing_to_worry_about():
    database = replace(HEALTHY.database, is_cdc_enabled=False)
    assert found(database=database, jobs=(), instances=(), slot=None, log_end=None) == ()


def test_without_an_agent_jobs_do_not_run():
    finding = only(Verdict.FAILING, agent_is_alive=False)
    assert "cdc.hr_capture" in finding.text
    assert finding.since == NOW
    assert finding.fix == "highwater start"


def awaited(seconds: float, published: datetime | None = LONG_AGO):
    """What is said of an agent that a supervisor has awaited for so long."""
    watermarks = replace(HEALTHY.watermarks, published_at=published)
    since = NOW - timedelta(seconds=seconds)
    [finding] = diagnose([replace(HEALTHY, watermarks=watermarks)], False, NOW, agent_awaited_since=since)
    return finding


@pytest.mark.parametrize("published", [None, LONG_AGO])
def test_an_agent_that_its_supervisor_starts_is_worth_attention(published):
    finding = awaited(60, published)
    assert finding.verdict is Verdict.ATTENTION
    assert finding.text.startswith("The agent is being started: cdc.hr_capture")
    assert (finding.since, finding.fix) == (NOW - timedelta(seconds=60), "")


def test_an_agent_that_stays_away_is_failing_though_supervised():
    finding = awaited(61)
    assert finding.verdict is Verdict.FAILING
    assert finding.text.startswith("The agent does not start: it has been away for 61 s: cdc.hr_capture")
    assert (finding.since, finding.fix) == (NOW - timedelta(seconds=61), "highwater doctor")


def test_an_agent_that_published_a_moment_ago_has_not_been_away_for_long():
    finding = awaited(3600, published=NOW - timedelta(seconds=5))
    assert (finding.verdict, finding.since) == (Verdict.ATTENTION, NOW - timedelta(seconds=5))


def test_an_agent_without_jobs_that_stays_away_is_worth_attention():
    idle = replace(HEALTHY, jobs=(), instances=())
    [finding] = diagnose([idle], False, NOW, agent_awaited_since=LONG_AGO)
    assert finding.verdict is Verdict.ATTENTION


def test_without_an_agent_and_jobs_it_is_worth_a_word():
    assert only(Verdict.ATTENTION, agent_is_alive=False, jobs=(), instances=()).subject == "Agent"


def test_a_stopped_job_is_worth_attention():
    stopped = replace(RUNNING, wanted=False, state=JobState.STOPPED, running=None)
    finding = only(Verdict.ATTENTION, jobs=(stopped,))
    assert (finding.since, finding.fix) == (LONG_AGO, "highwater capture start -d hr")


def test_a_failed_job_says_why():
    failed = replace(RUNNING, state=JobState.FAILED, running=None, message="Msg 22863: disk full")
    finding = only(Verdict.FAILING, jobs=(failed,))
    assert (finding.text, finding.since) == ("Msg 22863: disk full", LONG_AGO)


def test_a_broken_log_is_mended_by_enabling_anew():
    failed = replace(RUNNING, state=JobState.FAILED, running=None, message="Msg 50003: …")
    error = ScanError(1, 1, NOW, 50003, 16, 1, "broken", "0", "0", "0")
    assert "highwater disable -d hr" in only(Verdict.FAILING, jobs=(failed,), errors=(error,)).fix


def changed_column(instance):
    """The fix that is told after a captured column of ``instance`` has changed."""
    error = CapturedColumnChanged("budget", instance.capture_instance, "numeric", "text", "no number.")
    failed = replace(RUNNING, state=JobState.FAILED, running=None, message=error.line())
    row = ScanError(1, 1, NOW, error.number, 16, 1, str(error), "0", "0", "0")
    other = replace(instance, capture_instance=f"{instance.capture_instance}_2")
    return only(Verdict.FAILING, jobs=(failed,), errors=(row,), instances=(other, instance)).fix


def test_a_changed_column_is_mended_by_enabling_its_table_again():
    instance = replace(an_instance(), supports_net_changes=True, index_name="pk", role_name="hr_reader")
    assert changed_column(instance) == (
        "highwater disable -d hr hr.department --capture-instance=hr_department; "
        "highwater enable -d hr hr.department --capture-instance=hr_department"
        " --columns=id,name --role=hr_reader --index=pk --net"
    )


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


@given(names, names, names, st.lists(names, min_size=1, unique=True))
def test_what_is_to_be_pasted_names_any_table_and_its_columns(schema, table, capture_instance, columns):
    captured = tuple(replace(an_instance().columns[0], column_name=name) for name in columns)
    named = {"source_schema": schema, "source_table": table, "capture_instance": capture_instance}
    words = shlex.split(changed_column(replace(an_instance(), columns=captured, **named)))
    enable = words[words.index("enable") :]
    assert words[3:5] == ["hr", enable[3]]
    assert parse_table_name(enable[3]) == (schema, table)
    assert enable[4] == f"--capture-instance={capture_instance}"
    assert parse_column_list(enable[5].removeprefix("--columns="), schema, table) == tuple(columns)


def test_tracked_tables_without_a_job():
    finding = only(Verdict.FAILING, jobs=())
    assert "no capture job" in finding.text
    assert finding.fix == "highwater sql -d hr -q \"EXEC sys.sp_cdc_add_job @job_type = N'capture'\""


def test_a_source_that_does_not_answer():
    finding = only(Verdict.FAILING, unreachable="connection refused", slot=None, log_end=None)
    assert finding.text == "connection refused. If it is gone for good: highwater disconnect hr --force"


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"wal_status": "lost"}, Verdict.FAILING),
        ({"wal_status": "unreserved"}, Verdict.FAILING),
        ({"retained_bytes": 2 * 1024**3}, Verdict.ATTENTION),
    ],
)
def test_log_that_is_held_or_lost(changes, verdict):
    only(verdict, slot=replace(SLOT, **changes))


def marks(scanned: int, age: timedelta) -> Watermarks:
    return replace(HEALTHY.watermarks, scanned=Lsn.at(scanned), published_at=NOW - age)


def test_stalled_is_told_from_idle_by_the_end_of_the_log():
    silent = timedelta(minutes=5)
    assert found(watermarks=marks(100, silent)) == ()
    finding = only(Verdict.ATTENTION, watermarks=marks(100, silent), log_end=Lsn.at(200))
    assert "300 s" in finding.text
    assert finding.since == NOW - silent


def test_a_polling_interval_is_no_stall():
    slow = replace(RUNNING, running=CaptureParameters(pollinginterval=600))
    silent = marks(100, timedelta(minutes=5))
    assert found(jobs=(slow,), watermarks=silent, log_end=Lsn.at(200)) == ()


def test_a_job_that_started_a_moment_ago_is_no_stall():
    fresh = replace(RUNNING, since=NOW)
    assert found(jobs=(fresh,), watermarks=marks(100, timedelta(hours=1)), log_end=Lsn.at(200)) == ()


def test_latency_over_the_threshold():
    finding = only(Verdict.ATTENTION, latest=a_session(1, tran_count=1, latency=61))
    assert "61 s" in finding.text
    assert "1,000 transactions/s" in finding.text


def test_the_worst_comes_first():
    findings = found(latest=a_session(1, tran_count=1, latency=61), slot=replace(SLOT, wal_status="lost"))
    assert [finding.verdict for finding in findings] == [Verdict.FAILING, Verdict.ATTENTION]
    assert verdict_of(findings) is Verdict.FAILING


CLIENT = Client("hr", "dbo_t", "billing", Lsn.at(50), LONG_AGO, LONG_AGO, timedelta(days=7), None, LONG_AGO)


@pytest.mark.parametrize(("hours", "is_told"), [(-1, True), (23, True), (25, False), (None, False)])
def test_a_client_that_cleanup_will_wait_for_soon(hours, is_told):
    at = None if hours is None else NOW + timedelta(hours=hours)
    forecasts = {("dbo_t", "billing"): ClientForecast(at, None)}
    findings = found(clients=(CLIENT,), client_forecasts=forecasts)
    assert len(findings) == is_told
    for finding in findings:
        assert f"{at:%H:%M:%S} UTC" in finding.text
        assert finding.fix.startswith("highwater client drop billing -c dbo_t -d hr")


def test_a_client_that_cleanup_waits_for_is_told_once():
    forecasts = {("dbo_t", "billing"): ClientForecast(LONG_AGO, None)}
    waiting = replace(CLIENT, held_lsn=Lsn.at(60), held_since=LONG_AGO)
    assert only(Verdict.ATTENTION, clients=(waiting,), client_forecasts=forecasts).since == LONG_AGO
