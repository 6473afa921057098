"""Collection sets that fail or whose snapshots are late."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from engine.model.collection import CollectionMode, CollectionRun, CollectionSet
from engine.model.job import RunOutcome
from engine.monitoring.collection_findings import collection_findings

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
RUN = CollectionRun(
    7, 1, NOW - timedelta(minutes=4), NOW, RunOutcome.SUCCEEDED, "", 9, 300, NOW - timedelta(hours=1)
)
SET = CollectionSet(
    1, UUID(int=1), "it's mine", None, False, True, CollectionMode.CACHED, "*/5 * * * *", 30, 1, False,
    NOW + timedelta(minutes=1), (), RUN,
)  # fmt: skip


def found(agent_is_alive=True, **differs):
    return list(collection_findings([replace(SET, **differs)], agent_is_alive, NOW))


def test_one_that_collects_is_no_finding():
    assert found() == found(last_run=None) == found(next_run=None) == []


def test_one_whose_last_snapshot_failed_is():
    [finding] = found(last_run=replace(RUN, outcome=RunOutcome.FAILED, message="Msg 50012: full."))
    assert "it's mine" in finding.text
    assert "full." in finding.text
    assert finding.since == RUN.end_time
    assert finding.fix == """highwater collector collect-now 'it'"'"'s mine'"""


@pytest.mark.parametrize(
    ("seconds", "differs", "is_told"),
    [
        (149, {}, False),
        (151, {}, True),
        (59, {"last_run": None}, False),
        (61, {"last_run": None}, True),
        (3600, {"is_running": False}, False),
        (3600, {"agent_is_alive": False}, False),
        (3600, {"last_run": replace(RUN, outcome=RunOutcome.RUNNING)}, True),
    ],
)
def test_a_late_snapshot_is_where_an_agent_is_to_take_it(seconds, differs, is_told):
    due = NOW - timedelta(seconds=seconds)
    assert [each.since for each in found(next_run=due, **differs)] == ([due] if is_told else [])
