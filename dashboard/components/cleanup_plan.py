"""What cleanup would do if it ran now: worked out in the background, shown before anything goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import glossary, state
from dashboard.charts.cleanup_effect import cleanup_chart, name_of
from dashboard.components.cleanup_job import is_under_way, tried_parameters, try_parameters
from dashboard.components.live_plot import live_plot
from dashboard.components.operation_box import operation_failure, operation_progress
from dashboard.components.problem import escaped
from dashboard.operations import Operation
from dashboard.snapshot import DatabaseView
from dashboard.theme import table_height
from engine.model.cleanup import CleanupPreview
from engine.model.client import ClientLag
from engine.model.job import CleanupParameters, TableCleanup

_SHOWN = "l_plan_shown"


@dataclass(frozen=True, slots=True)
class Plan:
    """What the job would do, and how far its clients are."""

    preview: CleanupPreview
    lags: Sequence[ClientLag]


def plan_of(view: DatabaseView) -> Operation | None:
    """The operation that works the plan out, begun where what it depends on has changed; None without a job.

    While a run is under way the last plan stays: it is what the run is measured by.
    """
    job = view.cleanup_job
    if job is None:
        return None
    tried = tried_parameters(view.name)
    key = _key(view, tried or job.configured)
    known = state.operations().get(str(st.session_state.get(f"{_SHOWN}:{view.name}")))
    if is_under_way(job) and known is not None:
        return known
    st.session_state[f"{_SHOWN}:{view.name}"] = key
    return state.operations().get(key) or _begin(view.name, key, tried)


def _key(view: DatabaseView, parameters: CleanupParameters) -> str:
    """Low endpoints, clients and parameters: not the high watermark, or every scan would begin a new one."""
    starts = tuple((each.object_id, each.start_lsn) for each in view.instances)
    clients = tuple((each.capture_instance, each.name, each.expires_after) for each in view.clients)
    return f"cleanup_plan:{view.name}:{hash((starts, clients, parameters))}"


def _begin(database: str, key: str, tried: CleanupParameters | None) -> Operation:
    engine = state.engine()

    def work(operation: Operation) -> Plan:
        operation.step("working out what goes")
        retention, threshold = (None, None) if tried is None else (tried.retention, tried.threshold)
        preview = engine.cleanup_preview(database, retention, threshold)
        operation.step("measuring clients")
        return Plan(preview, engine.client_lags(database))

    return state.operations().submit(key, "Cleanup preview", work)


def _again(database: str, key: str, tried: CleanupParameters | None) -> None:
    _begin(database, key, tried)


def finished(operation: Operation | None) -> Plan | None:
    """The plan, where it is there."""
    result = None if operation is None else operation.result
    return result if isinstance(result, Plan) else None


def plan_card(view: DatabaseView, operation: Operation) -> None:
    """The verdict in a sentence, the chart, the table."""
    tried = tried_parameters(view.name)
    with st.container(border=True, gap="small", key="l_plan"):
        with st.container(horizontal=True, vertical_alignment="center"):
            title = "What would go" if tried is None else f"What would go with {_words(tried)}, not saved"
            st.markdown(f"**{title}**", help=glossary.CLEANUP_PREVIEW, width="content")
            st.space("stretch")
            if tried is not None:
                st.button(
                    "Back to the job's own",
                    key="l_untry",
                    type="tertiary",
                    on_click=try_parameters,
                    args=(view.name, None),
                )
            if not operation.is_active:
                st.button(
                    "Work out again",
                    icon=":material/refresh:",
                    key="l_again",
                    type="tertiary",
                    on_click=_again,
                    args=(view.name, operation.key, tried),
                )
        if operation.is_active:
            operation_progress(operation, "l_plan_wait")
            st.skeleton(height=150)
            return
        plan = finished(operation)
        if operation_failure(operation) or plan is None:
            return
        if tried is None:
            st.session_state[f"l_plan:{view.name}"] = plan.preview
        _shown(plan.preview, operation)


def _words(parameters: CleanupParameters) -> str:
    return f"retention {fmt.retention(parameters.retention)}, threshold {fmt.number(parameters.threshold)}"


def _shown(preview: CleanupPreview, operation: Operation) -> None:
    zone = state.viewer().axis_zone
    age = fmt.ago(operation.finished, state.now())
    if preview.low_endpoint is None:
        st.info("Nothing has been captured yet, so nothing would go.", icon=":material/info:")
        return
    moves = [each for each in preview.tables if each.capture_instance and each.low_before != each.low_after]
    if not preview.rows and not moves:
        st.success(
            f"Nothing would go: every change is younger than "
            f"{fmt.retention(preview.parameters.retention)}, or "
            "kept for a client.",
            icon=":material/check_circle:",
        )
    else:
        st.markdown(
            f"**{fmt.plural(preview.rows, 'row')}** in {fmt.plural(preview.statements, 'statement')}; "
            f"{fmt.plural(len(moves), 'low watermark')} would move to "
            f"{fmt.moment(preview.low_time, zone)}, `{preview.low_endpoint}`"
        )
    _clients(preview)
    live_plot(cleanup_chart(preview.tables, zone), "l_plan_chart")
    _table(preview.tables)
    st.caption(
        f"Worked out {age}, in {fmt.duration(round(operation.seconds, 1))}; a scan since then is not in it."
    )


def _clients(preview: CleanupPreview) -> None:
    for each in preview.held:
        st.markdown(f":orange[:material/hourglass:] {escaped(str(each))}")
    for client in preview.dropped:
        silent = fmt.ago(client.acknowledged_at, state.now())
        st.markdown(
            f":orange[:material/person_off:] Client **{escaped(client.name)}** of "
            f"{escaped(client.capture_instance)} was last heard of {silent}: it would be dropped."
        )


def _table(tables: Sequence[TableCleanup]) -> None:
    zone = state.viewer().axis_zone
    frame = pd.DataFrame(
        {
            "table": [name_of(each) for each in tables],
            "low watermark": [
                fmt.moment(each.time_before, zone) if each.time_before else fmt.DASH for each in tables
            ],
            "would be": [
                fmt.moment(each.time_after, zone) if each.time_after else fmt.DASH for each in tables
            ],
            "rows": [each.rows for each in tables],
            "statements": [each.statements for each in tables],
            "whole files": [each.whole_files for each in tables],
            "shared files": [each.shared_files for each in tables],
            "waits for": [each.waits_for or "" for each in tables],
        }
    )
    numbers = {
        name: st.column_config.NumberColumn(format="localized", help=meaning)
        for name, meaning in {
            "rows": "Rows below the new low watermark.",
            "statements": "One for all whole files, then one for each threshold of rows of the others.",
            "whole files": "Files that hold nothing else: they go without rewriting anything.",
            "shared files": "Files that hold rows that stay too: they are rewritten.",
        }.items()
    }
    st.dataframe(
        frame,
        hide_index=True,
        key="l_plan_table",
        height=table_height(len(frame), 8),
        column_config=numbers,
        alt="What cleanup would do to each table",
    )
