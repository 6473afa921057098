"""The agent compacts: when it is asked, and after each cleanup."""

from __future__ import annotations

from functools import partial

import pytest

from engine.agent import agent, checkpoints
from engine.agent.checkpoints import Checkpoints
from engine.errors import AgentNotRunning
from engine.model.job import JobState, RunOutcome
from tests.agent.conftest import until, until_state
from tests.capture.conftest import DATABASE

CHANGES = 6


@pytest.fixture
def captured(tracked):
    """A change table, and a mapping, of as many small files as there were scans."""
    for number in range(CHANGES):
        tracked.sql(f"INSERT INTO t VALUES ({number})")
        tracked.drain()
    return tracked


def files(workbench):
    paths = workbench.lake.change_table(DATABASE, "public_t"), workbench.lake.lsn_time_mapping(DATABASE)
    return [len(workbench.spark.read.format("delta").load(path).inputFiles()) for path in paths]


def test_asked_for_or_after_a_cleanup_it_leaves_few_files_and_capture_goes_on(captured, new_agent):
    before = files(captured)
    assert min(before) >= CHANGES
    with pytest.raises(AgentNotRunning, match="compacted when it is"):
        captured.engine.compact(DATABASE)
    new_agent("test")  # the holder of the lease that captured so far
    until_state(captured, JobState.RUNNING)
    until(lambda: captured.engine.last_compaction(DATABASE).end_time is not None, "it has been made up for")
    assert files(captured) == [1, 1]
    run = captured.engine.compact(DATABASE, 300)
    assert run.message == "0 small files became 0; unused files were looked for less than an hour ago."
    captured.sql("INSERT INTO t VALUES (100)")
    captured.engine.sync(DATABASE, 300)
    assert sorted(row["id"] for row in captured.rows("public_t")) == [*range(CHANGES), 100]
    rows = captured.engine.newest_changes(DATABASE, 1, "public_t")["public_t"]
    assert rows["id"].to_pylist()[-1] == 100
    captured.engine.start_job(DATABASE, "cleanup")
    until(
        lambda: (
            captured.engine.last_compaction(DATABASE).start_time > run.end_time
            and captured.engine.last_compaction(DATABASE).outcome is RunOutcome.SUCCEEDED
        ),
        "it is compacted after cleanup",
    )


def test_without_a_cleanup_small_files_do_not_pile_up(tracked, new_agent, monkeypatch):
    monkeypatch.setattr(checkpoints, "CHECKPOINTS_A_COMPACTION", 2)
    monkeypatch.setattr(agent, "Checkpoints", partial(Checkpoints, every=3))
    new_agent("test")
    until_state(tracked, JobState.RUNNING)
    assert tracked.engine.last_compaction(DATABASE) is None
    number = 0

    def is_compacted():
        nonlocal number
        number += 1
        tracked.sql(f"INSERT INTO t VALUES ({number})")
        tracked.engine.sync(DATABASE, 300)
        last = tracked.engine.last_compaction(DATABASE)
        return last is not None and last.outcome is RunOutcome.SUCCEEDED

    until(is_compacted, "compacted by itself")
    assert number >= CHANGES, "not after each checkpoint"
    assert max(files(tracked)) < number
    assert sorted(row["id"] for row in tracked.rows("public_t")) == list(range(1, number + 1))
