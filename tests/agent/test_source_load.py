"""Loads of a source that hold things up elsewhere: a transaction that stays open, writes nobody captures."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest

from engine.capture import scan
from engine.model.job import JobState
from tests.agent.conftest import SECONDS, RunningAgent, until, until_state
from tests.capture.conftest import DATABASE, Workbench
from tests.capture.replayed import check
from tests.faults.source_replay import SourceReplay
from tests.faults.write_load import SCHEMA, TABLES, WriteLoad

pytestmark = pytest.mark.faults
IS_LONG = int(os.environ.get("HIGHWATER_FAULT_SEEDS", "1")) > 1
COMMITS = 5000 if IS_LONG else 1000
MEGABYTE = 1024 * 1024
MOST_LOG = 32 * MEGABYTE
"""What the source may keep for a capture that has nothing to read."""


def test_a_transaction_stays_open_while_thousands_commit(
    workbench: Workbench, new_agent: Callable[..., RunningAgent]
) -> None:
    """Whatever commits meanwhile is captured at once; its own rows come where it commits."""
    workbench.sql(SCHEMA)
    for table in TABLES:
        workbench.enable(table.name.removeprefix("public."))
    workbench.engine.change_job(DATABASE, maxtrans=1000, pollinginterval=0)
    replay = SourceReplay(workbench.dsn)
    new_agent()
    until_state(workbench, JobState.RUNNING)
    with psycopg.connect(workbench.dsn) as waiting:
        waiting.execute("INSERT INTO note VALUES ('first of the long one')")
        waiting.execute("INSERT INTO item SELECT 'long', n, n FROM generate_series(1000, 1400) n")
        WriteLoad(workbench.dsn, 1).transactions(40)
        for number in range(COMMITS):
            workbench.sql(f"INSERT INTO note VALUES ('short {number}')")
            if number % 500 == 0:
                waiting.execute("UPDATE item SET qty = qty + 1 WHERE sku = 'long' AND place < 1010")
        workbench.engine.sync(DATABASE, SECONDS)
        seen = [row["body"] or "" for row in workbench.rows("public_note")]
        assert sum(body.startswith("short ") for body in seen) == COMMITS
        assert "first of the long one" not in seen
        waiting.execute("INSERT INTO note VALUES ('last of the long one')")
        before = workbench.control.watermarks.get(DATABASE).high
    workbench.engine.sync(DATABASE, SECONDS)
    check(workbench, replay)
    rows = [row for row in workbench.rows("public_note") if (row["body"] or "").endswith("of the long one")]
    [commit] = {row["__$start_lsn"] for row in rows}
    assert (len(rows), commit > str(before)) == (2, True)


def has_followed(workbench: Workbench, place: int) -> bool:
    """Whether the slot has come so far; the source goes on meanwhile, as a longer log is looked for."""
    workbench.sql("INSERT INTO other VALUES ('x')")
    return workbench.engine.slot(DATABASE).confirmed.position >= place


def test_writes_that_nobody_captures_leave_little_log(
    workbench: Workbench, new_agent: Callable[..., RunningAgent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No change of a captured table, no reader, no waiting client: the agent alone moves the slot on."""
    if not IS_LONG:
        monkeypatch.setattr(scan, "IDLE_PUBLICATION", timedelta(seconds=0.2))
    workbench.sql("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE other (body text)")
    workbench.sql("ALTER TABLE other ALTER body SET STORAGE EXTERNAL")
    workbench.enable("t")
    workbench.engine.change_job(DATABASE, pollinginterval=0)
    new_agent()
    until_state(workbench, JobState.RUNNING)
    kept = []
    for _ in range(40):
        workbench.sql("INSERT INTO other SELECT repeat('x', 1000) FROM generate_series(1, 3000)")
        [(place,)] = workbench.sql("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
        until(lambda place=place: has_followed(workbench, place), "the slot follows")
        kept.append(workbench.engine.slot(DATABASE).retained_bytes)
    assert max(kept) < MOST_LOG, [each // MEGABYTE for each in kept]
