"""Capture instances as a list, and one of them in full."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import glossary, reading, state
from dashboard.components.disable_dialog import disable_dialog
from dashboard.components.go_to import arrivals
from dashboard.components.operation_box import operation_failure, operation_progress
from dashboard.components.permission import permitted
from dashboard.components.row_table import row_table
from dashboard.dialogs import open_dialog
from dashboard.snapshot import DatabaseView
from dashboard.theme import OPERATIONS, table_height
from engine.model.capture_instance import CaptureInstance


def instance_table(view: DatabaseView) -> CaptureInstance | None:
    """All capture instances; returns the selected one, the first when none is."""
    now, viewer = state.now(), state.viewer()
    ordered = sorted(view.instances, key=lambda i: (i.source_schema, i.source_table, i.object_id))
    frame = pd.DataFrame(
        {
            "source table": [f"{i.source_schema}.{i.source_table}" for i in ordered],
            "capture instance": [i.capture_instance for i in ordered],
            "since": [fmt.clock(i.create_date, now, viewer.zone, viewer.local) for i in ordered],
            "columns": [len(i.columns) for i in ordered],
            "key": [", ".join(i.index_column_names) or "none" for i in ordered],
            "net": ["yes" if i.supports_net_changes else "no" for i in ordered],
            "role": [i.role_name or "none" for i in ordered],
        }
    )
    widths = {"source table": 200, "capture instance": 210}
    columns = {name: st.column_config.TextColumn(width=width) for name, width in widths.items()}
    names = [i.capture_instance for i in ordered]
    wanted = st.query_params.get("t_ci")
    first = names.index(wanted) if wanted in names else None
    row = row_table(frame, f"t_list_{arrivals()}", "Capture instances", 14, columns, first, names)
    _keep_in_address(None if row is None else names[row])
    return ordered[row or 0] if ordered else None


def _keep_in_address(selected: str | None) -> None:
    if selected is not None:
        st.query_params["t_ci"] = selected
    else:
        st.query_params.pop("t_ci", None)


def instance_drawer(view: DatabaseView, instance: CaptureInstance | None) -> None:
    """Columns, key, role, validity, functions, rows by operation; and disabling it."""
    if instance is None:
        return
    with st.container(border=True, key="t_drawer"):
        st.markdown(f"## {instance.capture_instance}", anchors=False)
        _facts(view, instance)
        columns, rows, functions = st.tabs(["Columns", "Rows", "Functions"], key="t_tab", on_change="rerun")
        with columns:
            _columns(instance)
        if rows.open:
            with rows:
                _rows(view, instance)
        with functions:
            _functions(instance)
        with st.container(horizontal=True):
            if st.button("Show changes", icon=":material/history:", key="t_changes"):
                state.go_to("changes", {"c_ci": instance.capture_instance})
            st.space("stretch")
            st.button(
                "Disable",
                icon=":material/delete:",
                key="t_disable",
                on_click=open_dialog,
                args=(disable_dialog, instance),
                **permitted("disable_table"),
            )


def _facts(view: DatabaseView, instance: CaptureInstance) -> None:
    since = fmt.moment_and_age(instance.create_date, state.now())
    low = fmt.NOT_ESTABLISHED if instance.start_lsn is None else f"`{instance.start_lsn}`"
    high = fmt.NOT_ESTABLISHED if view.watermarks.high is None else f"`{view.watermarks.high}`"
    key = ", ".join(instance.index_column_names)
    identifier = f"{key} ({instance.index_name})" if key else "none: no net changes"
    facts = [
        ("Source table", f"`{instance.source_schema}.{instance.source_table}`"),
        ("Enabled", since),
        ("Low watermark", low),
        ("High watermark", high),
        ("Row identifier", identifier),
        ("Gating role", f"`{instance.role_name}`" if instance.role_name else "none"),
    ]
    st.table(
        [{"": name, " ": value} for name, value in facts], border=False, hide_index=True, hide_header=True
    )


def _columns(instance: CaptureInstance) -> None:
    keys = set(instance.index_column_names)
    frame = pd.DataFrame(
        {
            "ordinal": [c.column_ordinal for c in instance.columns],
            "column": [c.column_name for c in instance.columns],
            "source type": [c.column_type for c in instance.columns],
            "in the change table": [c.lake_type for c in instance.columns],
            "key": ["key" if c.column_name in keys else "" for c in instance.columns],
        }
    )
    st.dataframe(
        frame, hide_index=True, height=table_height(len(frame), 8), alt="Captured columns by ordinal"
    )


def _functions(instance: CaptureInstance) -> None:
    lines = [f"cdc.fn_cdc_get_all_changes_{instance.capture_instance}(from_lsn, to_lsn, option)"]
    if instance.supports_net_changes:
        lines.append(f"cdc.fn_cdc_get_net_changes_{instance.capture_instance}(from_lsn, to_lsn, option)")
    st.code("\n".join(lines), language="sql", wrap_lines=True)
    st.caption(glossary.RANGE_ENDS)


def _rows(view: DatabaseView, instance: CaptureInstance) -> None:
    high = view.watermarks.high
    if instance.start_lsn is None or high is None:
        st.caption("Nothing was captured yet.")
        return
    key = f"rows:{view.name}:{instance.object_id}:{high}"
    operations, engine = state.operations(), state.engine()
    shown = st.session_state.get("t_rows")
    if shown is None or not shown.startswith(f"rows:{view.name}:{instance.object_id}:"):
        st.session_state["t_rows"] = shown = key
    operation = operations.get(shown) or operations.submit(
        shown, "Counting rows", lambda work: reading.count_by_operation(engine, instance, work)
    )

    if operation.is_active:
        operation_progress(operation, "t_rows")
    elif not operation_failure(operation):
        counts = operation.result
        rows = [
            {"operation": look.label, "rows": fmt.number(counts.get(code, 0))}
            for code, look in OPERATIONS.items()
        ][:4]
        st.table([*rows, {"operation": "all", "rows": fmt.number(sum(counts.values()))}], hide_index=True)
        st.caption(f"counted {fmt.ago(operation.finished, state.now())}; an update has two rows")
