"""A job that was dropped though tables are captured, and the way to have it again."""

from __future__ import annotations

import streamlit as st

from dashboard import state, statements
from dashboard.components.permission import permitted
from dashboard.components.problem import attempt, escaped, last_problem
from dashboard.components.statement_box import statement_box
from dashboard.snapshot import DatabaseView


def dropped_job(view: DatabaseView, job_type: str, said: str, key: str, start_job: bool = True) -> None:
    """What is without it, in the words ``said``; the statement and the button. key: of the page's widgets."""
    with st.container(border=True, key=f"{key}_no_job"):
        st.markdown(f"## {escaped(view.name)} has no {job_type} job", anchors=False)
        st.write(said)
        statement_box(statements.add_job(view.name, job_type, start_job=start_job))
        last_problem(f"{key}_not_added:{view.name}")
        st.button(
            "Add the job",
            type="primary",
            key=f"{key}_add_job",
            on_click=_add,
            args=(view.name, job_type, start_job, f"{key}_not_added:{view.name}"),
            **permitted("add_job"),
        )


def _add(database: str, job_type: str, start_job: bool, not_added: str) -> None:
    attempt(lambda: state.engine().add_job(database, job_type, start_job=start_job), not_added)
    state.changed()
