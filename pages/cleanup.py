"""Cleanup: what will go, what went, and for whom it waits."""

from __future__ import annotations

from dashboard import state
from dashboard.components import first_steps
from dashboard.components.cleanup_job import cleanup_job_card
from dashboard.components.cleanup_plan import finished, plan_card, plan_of
from dashboard.components.cleanup_runs import run_cards
from dashboard.components.client_registry import client_card
from dashboard.components.compaction import compaction_line
from dashboard.components.instance_cleanup import instance_outcome


def job() -> None:
    """The job and what it would do now."""
    now = state.selected()
    if now is None:
        return
    operation = plan_of(now)
    plan = finished(operation)
    cleanup_job_card(now, None if plan is None else plan.preview)
    instance_outcome(now)
    if operation is not None:
        plan_card(now, operation)


def effects() -> None:
    """What went, whom it waits for, and the files that are left."""
    now = state.selected()
    if now is None:
        return
    if now.cleanup_job is not None:
        run_cards(now)
    plan = finished(plan_of(now))
    client_card(now, () if plan is None else plan.lags)
    compaction_line(now)


view = first_steps.captured()
if view is not None:
    state.live(job)
    state.live(effects)
