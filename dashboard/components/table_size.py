"""How large a change table is: read from the lake in the background, again when capture has gone on."""

from __future__ import annotations

import streamlit as st

from dashboard import format as fmt
from dashboard import state
from dashboard.components.operation_box import AT_ONCE, follow_operation
from dashboard.components.problem import escaped
from dashboard.operations import Operation, OperationState
from dashboard.problems import problem_of
from dashboard.snapshot import DatabaseView
from engine.model.capture_instance import CaptureInstance
from engine.model.lsn import Lsn
from engine.model.table_size import TableSize

_KEPT = "table_size_shown"
PAUSE = 5.0
"""Least seconds between two looks at one table, however fast the watermark moves."""


def size_text(view: DatabaseView, instance: CaptureInstance) -> str:
    """``1,234 rows, 3 files, 1.2 MiB``, for Markdown; or why it is not known."""
    operation = _read(view, instance)
    if operation.state is OperationState.FAILED and operation.error is not None:
        return f"not known: {escaped(problem_of(operation.error).title)}"
    if operation.state is OperationState.CANCELLED:
        return "not known"
    if operation.is_active:
        follow_operation(operation)
        return "being read…"
    size: TableSize | None = operation.result[1]
    if size is None:
        return "no rows yet: capture makes the table when it meets the instance in the log"
    rows = fmt.plural(size.rows, "row")
    return f"{rows}, {fmt.plural(size.files, 'file')}, {fmt.size(size.bytes)}"


def _read(view: DatabaseView, instance: CaptureInstance) -> Operation:
    """The newest answer; while a newer one is on its way, the one that this viewer has seen."""
    key = f"table_size|{view.name}|{instance.object_id}"
    known = state.operations().get(key)
    if known is None or _is_stale(known, view):
        known = _begin(view, instance, key)
        known.wait(AT_ONCE)
    if known.state is OperationState.DONE:
        st.session_state[_KEPT] = known
        return known
    kept: Operation | None = st.session_state.get(_KEPT)
    return kept if known.is_active and kept is not None and kept.key == key else known


def _begin(view: DatabaseView, instance: CaptureInstance, key: str) -> Operation:
    engine, high = state.engine(), view.watermarks.high

    def work(operation: Operation) -> tuple[Lsn | None, TableSize | None]:
        operation.step("reading the table's log")
        return high, engine.change_table_size(view.name, instance.capture_instance)

    return state.operations().submit(key, f"Size of {instance.change_table}", work)


def _is_stale(operation: Operation, view: DatabaseView) -> bool:
    if operation.finished is None or (state.now() - operation.finished).total_seconds() < PAUSE:
        return False
    return operation.state is not OperationState.DONE or operation.result[0] != view.watermarks.high
