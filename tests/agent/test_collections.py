"""The agent collects: what is asked for, what is due, what failed and goes on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from engine.collector.parameters import parameters_of
from engine.errors import CollectionFailed
from engine.model.job import RunOutcome
from tests.agent.conftest import until

SLOTS = parameters_of([("highwater.cdc_slot", "slots")])


def test_it_collects_what_is_due_and_goes_on_after_a_failure(workbench, new_agent):
    engine, control = workbench.engine, workbench.control
    engine.stop_collection_set(1)
    number = engine.create_collection_set("mine", interval_minutes=360)
    engine.create_collection_item(number, "slots", SLOTS)
    folder = Path(workbench.lake.root, "custom_snapshots")
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("no folder: the lake takes nothing")
    new_agent()
    until(control.agent_is_alive, "the agent runs")
    with pytest.raises(CollectionFailed, match="mine"):
        engine.collect("mine")
    [failed] = engine.collection_runs(number)
    assert (failed.outcome, failed.rows, bool(failed.message)) == (RunOutcome.FAILED, 0, True)
    folder.unlink()
    engine.start_collection_set(number)
    until(lambda: engine.collection_runs(number)[0].outcome is RunOutcome.SUCCEEDED, "its first snapshot")
    planned = engine.collection_sets()[1].next_run
    assert planned.hour % 6 == planned.minute == 0
    # A time that a clock planned which has gone back since gives way to the next one.
    control.collection_sets.change(number, next_run=planned + timedelta(days=40))
    until(lambda: engine.collection_sets()[1].next_run == planned, "it is planned anew")
    control.collection_sets.change(number, next_run=planned - timedelta(days=9))
    until(
        lambda: [run.outcome for run in engine.collection_runs(number)[:-1]] == [RunOutcome.SUCCEEDED] * 2,
        "what was missed is made up for",
    )
    until(lambda: engine.collection_sets()[1].next_run == planned, "and that once")
    rows = engine.custom_snapshots("slots").collect()
    assert len({row.snapshot_id for row in rows}) == 2
    assert failed.snapshot_id not in {row.snapshot_id for row in rows}
