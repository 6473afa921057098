"""The tuner: what other parameters would have done in the last week, and which to take."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

import streamlit as st

from dashboard import format as fmt
from dashboard import glossary, state, statements, tuner
from dashboard.components.operation_box import is_answered
from dashboard.components.permission import permitted
from dashboard.components.problem import attempt, last_problem
from dashboard.components.statement_box import statement_popover
from dashboard.operations import Operation
from dashboard.sessions import align_up
from dashboard.snapshot import DatabaseView
from dashboard.tuner import Load
from engine.model.job import CaptureParameters, Job, RunOutcome

WEEK, STEP = timedelta(days=7), 60
_GOAL = "k_goal"


def tuner_card(view: DatabaseView, job: Job) -> None:
    """Reads the history only while it is open, once an hour for all viewers."""
    with st.expander(
        "Tuner: what would other parameters have done?",
        icon=":material/model_training:",
        type="compact",
        key="k_tuner",
        on_change="rerun",
    ) as card:
        pass
    if not card.open:
        return
    with card:
        operation = _operation(view)
        if is_answered(operation, "k_tuner_wait"):
            _advice(job, operation.result)


def _operation(view: DatabaseView) -> Operation:
    end = align_up(state.now(), 3600)
    key = f"tuner:{view.name}:{end.isoformat()}"
    engine, database = state.engine(), view.name

    def work(operation: Operation) -> Load:
        operation.step("reading the history of a week")
        if not any(run.outcome is RunOutcome.SUCCEEDED for run in engine.collection_runs(None, 20)):
            return tuner.load_of((), STEP)
        return tuner.load_of(engine.collected_series(end - WEEK, end, database, STEP), STEP)

    return state.operations().get(key) or state.operations().submit(key, "Tuner", work)


def _advice(job: Job, load: Load) -> None:
    running = job.running or job.configured
    name = st.selectbox(
        "A change is to be there within",
        list(tuner.GOALS),
        index=1,
        key=_GOAL,
        width=220,
        help=glossary.TUNER,
    )
    goal = tuner.GOALS[name]
    best = tuner.recommended(running, load, goal)
    st.markdown(f"**{tuner.sentence(running, load, goal)}**")
    st.table(
        [
            {
                "": word,
                "maxtrans": fmt.number(each.parameters.maxtrans),
                "maxscans": fmt.number(each.parameters.maxscans),
                "pollinginterval": f"{each.parameters.pollinginterval} s",
                "could take": fmt.rate(each.ceiling, "tran/s"),
                "slowest change": fmt.duration(round(each.worst, 1)),
                "behind": fmt.duration(float(each.behind)) if each.behind else "never",
                "looks at the log": f"{fmt.number(each.drains)} × an hour",
            }
            for word, each in tuner.alternatives(running, load, goal)
        ],
        border="horizontal",
        hide_index=True,
    )
    st.caption(
        f"The busiest minute had {fmt.rate(load.peak, 'tran/s')}; a scan costs {fmt.duration(load.scan)} and "
        f"{fmt.duration(1000 * load.cost)} for each thousand transactions. A model, not a replay."
    )
    last_problem(_not_saved(job.database))
    if any(load.transactions) and best.parameters != job.configured:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                "Save the recommended ones",
                icon=":material/save:",
                key="k_take",
                on_click=_save,
                args=(job.database, best.parameters),
                **permitted("change_job"),
            )
            statement_popover(
                statements.change_job(job.database, **asdict(best.parameters)), key="k_take_statement"
            )
            st.caption("They take effect when the job is restarted.")


def _not_saved(database: str) -> str:
    return f"k_not_taken:{database}"


def _save(database: str, parameters: CaptureParameters) -> None:
    attempt(lambda: state.engine().change_job(database, **asdict(parameters)), _not_saved(database))
    state.changed()
