"""What Prometheus is told, and that the dashboard and the document speak of the same."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from engine.model.client import ClientForecast
from engine.model.job import CLEANUP_SCHEDULE, CleanupParameters, Job, JobRun, JobState, JobType, RunOutcome
from engine.monitoring.capture_state import AgentFacts, CaptureState, log_forecast, state_of_capture
from engine.monitoring.diagnosis import Verdict
from engine.monitoring.forecast import LogPoint
from engine.monitoring.metrics import Reading, families
from engine.monitoring.status import DatabaseStatus, EngineStatus
from tests.monitoring.sessions import a_session
from tests.monitoring.test_collection_findings import SET
from tests.monitoring.test_diagnosis import CLIENT, HEALTHY, LONG_AGO, NOW, RUNNING, SLOT

DOCS = Path(__file__).parents[2] / "docs"
CLEANUP = Job(
    RUNNING.job_id,
    "hr",
    JobType.CLEANUP,
    CleanupParameters(),
    None,
    False,
    JobState.STOPPED,
    LONG_AGO,
    "",
    CLEANUP_SCHEDULE,
    NOW,
    JobRun(JobType.CLEANUP, LONG_AGO, NOW, RunOutcome.SUCCEEDED, "", 42),
)
FACTS = replace(
    HEALTHY,
    jobs=(RUNNING, CLEANUP),
    slot=replace(SLOT, safe_wal_size=900, limit_bytes=1000, disk_free_bytes=5000),
    log_before=LogPoint(40, NOW - timedelta(seconds=60)),
    clients=(CLIENT,),
    client_forecasts={("dbo_t", "billing"): ClientForecast(NOW + timedelta(hours=1), None)},
)
TOTAL = a_session(0, tran_count=7, command_count=70, log_record_count=80, latency=3, failed_sessions_count=2)


def a_reading(facts=FACTS, **differs):
    capture = state_of_capture(facts, AgentFacts(True), NOW)
    database = DatabaseStatus(facts, tuple(facts.jobs), capture, log_forecast(facts, capture, NOW))
    status = EngineStatus(NOW, Verdict.HEALTHY, (), True, (), (database,), (SET,))
    return Reading("1.2", is_current=True, status=status, totals={"hr": TOTAL}, **differs)


def samples(reading):
    return [sample for family in families(reading) for sample in family.samples]


def value(name, reading=None, **labels):
    [found] = [
        each.value
        for each in samples(reading or a_reading())
        if each.name == f"highwater_{name}" and labels.items() <= each.labels.items()
    ]
    return found


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("build_info", {"version": "1.2"}, 1),
        ("control_up", {}, 1),
        ("findings", {"verdict": "failing"}, 0),
        ("capture_number_of_committed_transactions_total", {"database": "hr"}, 7),
        ("capture_number_of_commands_total", {"database": "hr"}, 70),
        ("capture_number_of_erroneous_scans_total", {}, 2),
        ("capture_seconds_behind_source", {}, 3),
        ("capture_lag_bytes", {}, 0),
        ("capture_connected", {}, 1),
        ("capture_last_transaction_commit_timestamp_seconds", {}, NOW.timestamp()),
        ("replication_slot_retained_bytes", {"slot_name": "highwater_hr"}, 1000),
        ("replication_slot_safe_wal_size_bytes", {}, 900),
        ("replication_slot_wal_status", {"wal_status": "reserved"}, 1),
        ("replication_slot_wal_status", {"wal_status": "lost"}, 0),
        ("log_growth_bytes_per_second", {}, 1),
        ("log_forecast_seconds", {"limit": "slot_limit"}, 900),
        ("log_forecast_seconds", {"limit": "disk_full"}, 5000),
        ("job_state", {"job_type": "capture", "state": "running"}, 1),
        ("job_state", {"job_type": "cleanup", "state": "running"}, 0),
        ("cleanup_last_run_deleted_rows", {}, 42),
        ("capture_instance_info", {"capture_instance": "hr_department", "source_table": "department"}, 1),
    ],
)
def test_values(name, labels, expected):
    assert value(name, **labels) == expected


def test_one_state_is_1():
    states = {
        each.labels["state"]: each.value
        for each in samples(a_reading())
        if each.name == "highwater_capture_state"
    }
    assert set(states) == set(CaptureState)
    assert sorted(states.values()) == [0, 0, 0, 0, 1]


def test_what_is_unknown_has_no_sample():
    away = replace(FACTS, slot=None, log_end=None, unreachable="refused")
    names = {each.name for each in samples(a_reading(away))}
    assert value("capture_connected", a_reading(away)) == 0
    assert value("capture_state", a_reading(away), state="unreachable") == 1
    assert not names & {"highwater_capture_lag_bytes", "highwater_replication_slot_retained_bytes"}


def test_before_the_first_reading():
    assert {each.name for each in samples(Reading("1", is_current=False))} == {
        "highwater_build_info",
        "highwater_control_up",
    }


def test_a_database_that_is_not_enabled_says_that_alone():
    facts = replace(FACTS, database=replace(FACTS.database, is_cdc_enabled=False))
    names = {each.name for each in samples(a_reading(facts)) if "database" in each.labels}
    assert names == {"highwater_database_cdc_enabled"}


def exposed():
    """Labels of each sample by its name."""
    return {each.name: set(each.labels) for each in samples(a_reading())}


BOARD = json.loads((DOCS / "grafana" / "highwater.json").read_text())
EXPRESSIONS = [
    *(target["expr"] for panel in BOARD["panels"] for target in panel["targets"]),
    *(each["definition"] for each in BOARD["templating"]["list"] if each["type"] == "query"),
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_dashboard_asks_for_metrics_and_labels_that_are_there(expression):
    used = re.findall(r"(highwater_\w+)(?:\{([^}]*)\})?", expression)
    assert used
    for name, selector in used:
        labels = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector)
        labels += re.findall(r"label_values\(\w+, (\w+)\)", expression)
        assert name in exposed()
        assert set(labels) <= exposed()[name]


def test_legends_name_labels_that_are_there():
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            [name] = set(re.findall(r"highwater_\w+", target["expr"]))
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= exposed()[name]


def test_every_metric_is_described_with_its_labels():
    rows = re.findall(r"^\| `(highwater_\w+)` \| (\w+) \|[^|]*\|([^|]*)\|", METRICS, re.MULTILINE)
    described = {name: set(re.findall(r"`(\w+)`", labels)) for name, _, labels in rows}
    assert described == exposed()
    types = {sample.name: family.type for family in families(a_reading()) for sample in family.samples}
    assert {name: kind for name, kind, _ in rows} == types


METRICS = (DOCS / "monitoring.md").read_text()


def test_clients_and_collection_sets_are_told():
    of_client = {"database": "hr", "capture_instance": "dbo_t", "client": "billing"}
    assert value("client_forecast_seconds", **of_client) == 3600
    assert value("client_holds_cleanup", **of_client) == 0
    of_set = {"collection_set": SET.name}
    assert value("collection_set_running", **of_set) == 1
    assert value("collection_last_run_failed", **of_set) == 0
    assert value("collection_last_run_timestamp_seconds", **of_set) == NOW.timestamp() - 240
    assert value("collection_next_run_timestamp_seconds", **of_set) == NOW.timestamp() + 60
