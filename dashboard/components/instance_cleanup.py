"""Cleanup of one change table by a low watermark of one's own (sp_cdc_cleanup_change_table)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from uuid import uuid4

import streamlit as st

from dashboard import format as fmt
from dashboard import ranges, state, statements
from dashboard.components.operation_box import is_answered, operation_failure, operation_progress
from dashboard.components.permission import permitted
from dashboard.components.problem import escaped
from dashboard.components.statement_box import statement_box
from dashboard.dialogs import close_dialog, dialog_button, open_dialog
from dashboard.operations import Operation
from dashboard.snapshot import DatabaseView, SnapshotFeed
from engine.engine import Engine
from engine.model.cleanup import CleanupOutcome, CleanupPreview
from engine.model.lsn import Lsn

THRESHOLD = 5000


@dataclass(frozen=True, slots=True)
class Asked:
    """One call as it was typed; ``force``: clients that are passed are dropped."""

    database: str
    capture_instance: str
    end: ranges.End
    threshold: int
    force: bool


@dataclass(slots=True)
class Form:
    """An opened dialog: what its plan is known by."""

    database: str
    mark: str = field(default_factory=lambda: uuid4().hex)


def instance_button(view: DatabaseView) -> None:
    """Opens the dialog."""
    st.button(
        "Clean up one instance",
        icon=":material/vertical_align_bottom:",
        key="l_one",
        on_click=_open,
        args=(view.name,),
        **permitted("cleanup_change_table", disabled=state.snapshot().failure is not None),
    )


def _open(database: str) -> None:
    open_dialog(instance_dialog, Form(database))


def _running(database: str) -> str:
    return f"cleanup_one:{database}"


def instance_outcome(view: DatabaseView) -> None:
    """How the last such call goes on, or ended, for whoever looks."""
    operation = state.operations().get(_running(view.name))
    if operation is None:
        return
    if operation.is_active:
        operation_progress(operation, "l_one_progress")
        return
    if operation_failure(operation):
        return
    outcome: CleanupOutcome = operation.result
    age = fmt.ago(operation.finished, state.now())
    rows = fmt.plural(outcome.deleted_rows, "row")
    text = f"{operation.title}: {rows} deleted below {fmt.lsn_long(outcome.low_endpoint)}, {age}."
    if outcome.cleanup_failed:
        st.error(f"{text} {escaped(outcome.message)}", icon=":material/error:")
    else:
        st.success(escaped(text), icon=":material/check_circle:")


@st.dialog(
    "Clean up one capture instance", width="large", icon=":material/delete_sweep:", on_dismiss=close_dialog
)
def instance_dialog(form: Form) -> None:
    """Instance, low watermark, threshold; what goes; the name typed before it does."""
    view = state.snapshot().database(form.database)
    names = [each.capture_instance for each in view.instances if each.start_lsn] if view is not None else []
    if view is None or not names:
        st.info("No instance has been met in the log yet.", icon=":material/info:")
        return
    fields = st.grid(3, min_column_width=180)
    name = fields.selectbox("Capture instance", names, key="l_one_instance")
    typed = fields.text_input(
        "New low watermark",
        key="l_one_low",
        placeholder="leave it where it is",
        help="A commit LSN (`0x` and 20 hex digits) or a time (`2026-11-21 09:14`, `now-1d`): the first "
        "commit from then on. Empty: only what is left below the present one goes.",
    )
    threshold = fields.number_input(
        "Threshold (rows)", 1, 2_147_483_647, THRESHOLD, step=1000, key="l_one_threshold"
    )
    force = st.checkbox("Also past clients that have not read so far: they are dropped", key="l_one_force")
    try:
        end = ranges.parse_end(typed, state.now(), state.viewer().axis_zone)
    except ValueError as error:
        st.error(str(error), icon=":material/error:")
        return
    asked = Asked(form.database, str(name), _fixed(form, typed, end), int(threshold), bool(force))
    operation = _plan(form, asked)
    _shown(operation)
    if operation.is_active or operation.result is None:
        return
    preview: CleanupPreview = operation.result
    _confirm(asked, preview)


def _fixed(form: Form, typed: str, end: ranges.End) -> ranges.End:
    """``now-1d`` means the moment it was typed, not that of every redraw."""
    known = st.session_state.get("l_one_typed")
    if known is None or known[:2] != (form.mark, typed):
        st.session_state["l_one_typed"] = known = (form.mark, typed, end)
    fixed: ranges.End = known[2]
    return fixed


def _plan(form: Form, asked: Asked) -> Operation:
    key = f"cleanup_one_plan:{form.mark}:{hash(asked)}"
    return state.operations().get(key) or state.operations().submit(
        key, "Working out what goes", partial(_preview, state.engine(), asked)
    )


def _low(engine: Engine, asked: Asked) -> Lsn | None:
    if isinstance(asked.end, datetime):
        return engine.map_time_to_lsn(asked.database, "smallest greater than or equal", asked.end)
    return asked.end


def _preview(engine: Engine, asked: Asked, work: Operation) -> CleanupPreview:
    work.step("reading the log of the change table")
    low = _low(engine, asked)
    if low is None and asked.end is not None:
        raise ValueError("Nothing was captured at that time or later: the low watermark can't go there.")
    return engine.cleanup_change_table_preview(
        asked.database, asked.capture_instance, low, asked.threshold, force=asked.force
    )


def _shown(operation: Operation) -> None:
    if is_answered(operation, "l_one_wait"):
        preview: CleanupPreview = operation.result
        st.markdown(_words(preview))


def _words(preview: CleanupPreview) -> str:
    if preview.low_endpoint is None:
        return "Nothing has been captured yet, so nothing would go."
    [table] = preview.tables
    zone = state.viewer().axis_zone
    lines = [
        f"**{fmt.plural(table.rows, 'row')}** would go in {fmt.plural(table.statements, 'statement')}. "
        "The low "
        f"watermark would be `{table.low_after}`, {fmt.moment(table.time_after, zone)}; whoever asks "
        "for changes "
        "from before gets an error."
    ]
    if table.low_before == table.low_after:
        lines = [
            f"**{fmt.plural(table.rows, 'row')}** are left below the low watermark, `{table.low_after}`."
        ]
    lines += [
        f"- Client **{escaped(client.name)}** of {escaped(client.capture_instance)} would be dropped."
        for client in preview.dropped
    ]
    return "\n".join(lines)


def _confirm(asked: Asked, preview: CleanupPreview) -> None:
    low = None if asked.end is None else preview.low_endpoint
    statement_box(
        statements.cleanup_change_table(
            asked.database,
            asked.capture_instance,
            None if low is None else str(low),
            asked.threshold,
            asked.force,
        )
    )
    name = asked.capture_instance
    typed = st.text_input(
        f"Type **{escaped(name)}** to confirm", key="l_one_name", live=True, autocomplete="off"
    )
    if dialog_button("Clean up", key="l_one_confirm", icon=":material/delete_sweep:", disabled=typed != name):
        state.operations().submit(
            _running(asked.database),
            f"Cleanup of {name}",
            partial(_run, state.engine(), state.feed(), asked, low),
        )
        close_dialog()
        st.rerun()


def _run(
    engine: Engine, feed: SnapshotFeed, asked: Asked, low: Lsn | None, work: Operation
) -> CleanupOutcome:
    work.step("deleting")
    try:
        return engine.cleanup_change_table(
            asked.database, asked.capture_instance, low, asked.threshold, force=asked.force
        )
    finally:
        feed.refresh()  # whoever sees that it has ended sees what it did
