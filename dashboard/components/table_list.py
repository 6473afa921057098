"""Capture instances as a list, and one of them in full."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import glossary, reading, state
from dashboard.components.disable_dialog import disable_dialog
from dashboard.components.go_to import arrivals
from dashboard.components.operation_box import operation_failure, operation_progress
from dashboard.components.permission import permitted
from dashboard.components.problem import escaped
from dashboard.components.row_table import keep_in_address, row_table
from dashboard.components.table_size import size_text
from dashboard.dialogs import open_dialog
from dashboard.snapshot import DatabaseView
from dashboard.theme import OPERATIONS, table_height
from engine.model.capture_instance import CaptureInstance
from engine.model.lsn import Lsn


def instance_table(view: DatabaseView) -> CaptureInstance | None:
    """Those of the capture instances that are searched for; the selected one, the first when none is."""
    ordered = sorted(view.instances, key=lambda i: (i.source_schema, i.source_table, i.object_id))
    shown = _searched(view, ordered)
    if not shown:
        st.caption("No capture instance is like that.")
        return None
    names = [i.capture_instance for i in shown]
    wanted = st.query_params.get("t_ci")
    if wanted is not None and view.instance(wanted) is None:
        st.info(f"There is no capture instance {escaped(wanted)} any more.", icon=":material/info:")
    row = row_table(
        _frame(view, shown),
        f"t_list_{arrivals()}",
        "Capture instances",
        14,
        _LOOKS,
        names.index(wanted) if wanted in names else None,
        [(view.name, name) for name in names],
    )
    keep_in_address("t_ci", None if row is None else names[row], "t_q")
    return shown[row or 0]


def _searched(view: DatabaseView, ordered: Sequence[CaptureInstance]) -> list[CaptureInstance]:
    """The box, how many it leaves, and how far all of them can be asked."""
    if st.session_state.get(_ARRIVED, 0) != arrivals():  # whoever comes by "Go to" wants to see that one
        st.session_state["t_q"] = ""
    st.session_state[_ARRIVED] = arrivals()
    with st.container(horizontal=True, vertical_alignment="center"):
        typed = st.text_input(
            "Search",
            key="t_q",
            bind="query-params",
            live=True,
            width=300,
            icon=":material/search:",
            placeholder="Table, instance or role",
            label_visibility="collapsed",
        )
        shown = matching(ordered, typed or "")
        count = fmt.plural(len(ordered), "capture instance")
        st.caption(count if len(shown) == len(ordered) else f"{fmt.number(len(shown))} of {count}")
    return shown


_ARRIVED = "t_arrived"


def matching(instances: Sequence[CaptureInstance], text: str) -> list[CaptureInstance]:
    """Those that have every word of the text in table, instance or gating role, however it is written."""
    words = text.casefold().split()

    def has_them(each: CaptureInstance) -> bool:
        said = f"{each.source_schema}.{each.source_table} {each.capture_instance} {each.role_name or ''}"
        return all(word in said.casefold() for word in words)

    return [each for each in instances if has_them(each)]


def _frame(view: DatabaseView, shown: Sequence[CaptureInstance]) -> pd.DataFrame:
    marks, now, viewer = view.watermarks, state.now(), state.viewer()

    def endpoint(lsn: Lsn | None, time: datetime | None) -> str:
        return f"{fmt.lsn_short(lsn)}  {fmt.clock(time, now, viewer.zone, viewer.local)}"

    high = endpoint(marks.high, marks.last_commit_time)
    return pd.DataFrame(
        {
            "source table": [f"{i.source_schema}.{i.source_table}" for i in shown],
            "capture instance": [i.capture_instance for i in shown],
            "low endpoint": [
                fmt.NOT_ESTABLISHED if i.start_lsn is None else endpoint(i.start_lsn, view.low_time(i))
                for i in shown
            ],
            "high endpoint": [fmt.DASH if i.start_lsn is None or marks.high is None else high for i in shown],
            "columns": [len(i.columns) for i in shown],
            "key": [", ".join(i.index_column_names) or "none" for i in shown],
            "net": ["yes" if i.supports_net_changes else "no" for i in shown],
            "role": [i.role_name or "none" for i in shown],
        }
    )


_ENDS = "The short LSN and when it was committed; the full one is below the list."
_LOOKS = {
    "source table": st.column_config.TextColumn(width=195),
    "capture instance": st.column_config.TextColumn(width=195),
    "low endpoint": st.column_config.TextColumn(width=175, help=f"From here on it can be asked. {_ENDS}"),
    "high endpoint": st.column_config.TextColumn(
        width=175, help=f"Up to here it can be asked: the database's high watermark. {_ENDS}"
    ),
    "columns": st.column_config.NumberColumn(width=65),
    "key": st.column_config.TextColumn(width=115),
    "net": st.column_config.TextColumn(width=45),
    "role": st.column_config.TextColumn(width=75),
}


def instance_drawer(view: DatabaseView, instance: CaptureInstance | None) -> None:
    """Size, validity, key, role, columns, rows by operation, functions; and disabling it."""
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
            st.button(
                "Show changes",
                icon=":material/history:",
                key="t_changes",
                on_click=_leave_for,
                args=(instance.capture_instance,),
            )
            st.space("stretch")
            st.button(
                "Disable",
                icon=":material/delete:",
                key="t_disable",
                on_click=open_dialog,
                args=(disable_dialog, instance),
                **permitted("disable_table"),
            )


_LEAVING = "t_leaving"


def _leave_for(capture_instance: str) -> None:
    st.session_state[_LEAVING] = capture_instance


def follow() -> None:
    """Goes to the changes that a click asked for: a page can't be left in a callback."""
    capture_instance = st.session_state.pop(_LEAVING, None)
    if capture_instance is not None:
        state.go_to("changes", {"c_ci": capture_instance})


def _facts(view: DatabaseView, instance: CaptureInstance) -> None:
    marks = view.watermarks
    key = ", ".join(instance.index_column_names)
    identifier = f"{key} ({instance.index_name})" if key else "none: no net changes"
    facts = [
        ("Source table", f"`{instance.source_schema}.{instance.source_table}`"),
        ("Enabled", _when(instance.create_date)),
        ("Size", size_text(view, instance)),
        ("Low endpoint", _endpoint(instance.start_lsn, view.low_time(instance))),
        ("High endpoint", _endpoint(marks.high, marks.last_commit_time)),
        ("Row identifier", identifier),
        ("Gating role", f"`{instance.role_name}`" if instance.role_name else "none"),
    ]
    st.table(
        [{"": name, " ": value} for name, value in facts], border=False, hide_index=True, hide_header=True
    )


def _endpoint(lsn: Lsn | None, time: datetime | None) -> str:
    return fmt.NOT_ESTABLISHED if lsn is None else f"`{lsn}`  {_when(time)}"


def _when(time: datetime | None) -> str:
    return fmt.moment_and_age(time, state.now(), state.viewer().axis_zone)


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
