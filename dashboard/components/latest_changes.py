"""Latest changes over all capture instances: read once for all viewers when the high watermark has moved."""

from __future__ import annotations

import streamlit as st

from dashboard import format as fmt
from dashboard import reading, state
from dashboard.components.change_table import latest_table
from dashboard.components.explorer import jump_to
from dashboard.components.operation_box import AT_ONCE
from dashboard.components.problem import problem_box
from dashboard.operations import Operation, OperationState
from dashboard.snapshot import DatabaseView
from dashboard.theme import ROW_HEIGHT
from engine.model.job import JobState

_KEPT = "latest_shown"
NOTHING_YET = "No changes yet. What is committed at the source appears here within seconds."
NOT_RUNNING = "No changes yet, and the capture job does not run: nothing appears here until it is started."
PAUSE = 2.0
"""Least seconds between two reads, however fast the watermark moves."""


def is_reading_first(view: DatabaseView | None) -> bool:
    """Whether nothing is shown yet and the first rows are on their way."""
    return view is not None and view.watermarks.high is not None and _shown(view) is None


def latest_changes(view: DatabaseView) -> None:
    """The table with its age; a row leads to the change in the explorer."""
    with st.container(border=True, gap="xsmall", key="latest"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("**Latest changes**", width="content")
            age = st.empty()
        if view.watermarks.high is None:
            _nothing(view)
            return
        was_empty = _shown(view) is None
        operation = _read(view)
        if operation.state is OperationState.DONE:
            st.session_state[_KEPT] = operation
            if was_empty:
                st.rerun()  # the fragment's timer goes back to the viewer's interval
        shown = _shown(view)
        if shown is not None:
            age.caption(f"read {fmt.ago(shown.finished, state.now())}", width="content")
            _table(view, shown)
        elif operation.state is OperationState.FAILED and operation.error is not None:
            problem_box(operation.error, "reading the latest changes")
        else:
            st.skeleton(height=ROW_HEIGHT * 11)  # the table shows ten of its rows


def _shown(view: DatabaseView) -> Operation | None:
    kept: Operation | None = st.session_state.get(_KEPT)
    return kept if kept is not None and kept.key == f"latest|{view.name}" else None


def _read(view: DatabaseView) -> Operation:
    operations, key = state.operations(), f"latest|{view.name}"
    known = operations.get(key)
    if known is not None and (known.is_active or not _is_stale(known, view)):
        return known
    high = view.watermarks.high
    assert high is not None
    engine = state.engine()

    def work(operation: Operation) -> tuple[object, object]:
        operation.step(str(high))
        return high, reading.read_latest(engine, view.instances, view.history, high, operation)

    operation = operations.submit(key, "Reading the latest changes", work)
    return operation if operation.wait(AT_ONCE) or known is None else known


def _is_stale(operation: Operation, view: DatabaseView) -> bool:
    if operation.finished is None or (state.now() - operation.finished).total_seconds() < PAUSE:
        return False
    return operation.state is not OperationState.DONE or operation.result[0] != view.watermarks.high


def _table(view: DatabaseView, shown: Operation) -> None:
    changes = shown.result[1]
    if not changes:
        _nothing(view)
        return
    index = latest_table(changes, view.instances, key="latest_table")
    if index is not None and index < len(changes):
        state.go_to("changes", jump_to(changes[index]))


def _nothing(view: DatabaseView) -> None:
    job = view.capture_job
    runs = job is None or job.state in (JobState.STARTING, JobState.RUNNING)
    st.caption(NOTHING_YET if runs else NOT_RUNNING)
