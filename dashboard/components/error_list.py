"""Errors of scan sessions: groups by number and phase, and one of them with its cause, fix and place."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import error_groups, state
from dashboard import format as fmt
from dashboard.change_links import RANGE
from dashboard.components.problem import escaped
from dashboard.components.row_table import row_table
from dashboard.error_groups import ErrorGroup
from dashboard.format import Zone
from dashboard.problems import cause_of
from dashboard.snapshot import DatabaseView
from dashboard.theme import table_height
from engine.model.scan_session import ScanError
from engine.monitoring.diagnosis import fix_of
from engine.monitoring.status import DatabaseStatus

EVERY = "every number"
KEPT = "Kept are the errors of the last 32 sessions that had any (`sys.dm_cdc_errors`), whatever the range."


def error_list(view: DatabaseView) -> None:
    """The groups, then the one that is selected, or the newest."""
    groups = error_groups.grouped(view.errors)
    if not groups:
        _none(view)
        return
    shown = _chosen(groups)
    with st.container(border=True, gap="xsmall"):
        group = _table(view, shown)
        st.caption(KEPT)
    error_drawer(view, group)


def _none(view: DatabaseView) -> None:
    published = view.watermarks.published_at
    since = f" The log was last read {fmt.ago(published, state.now())}." if published is not None else ""
    st.success(
        f"No errors of {escaped(view.name)}: no scan session or cleanup has failed.{since}",
        icon=":material/check_circle:",
    )
    st.caption(KEPT)


def _chosen(groups: list[ErrorGroup]) -> list[ErrorGroup]:
    """Those of the number in the address; a number that is not there is said, and all are shown."""
    numbers = [EVERY, *sorted({str(group.number) for group in groups}, key=int)]
    wanted = st.session_state.get("e_no") or st.query_params.get("e_no")
    if wanted not in (None, *numbers):
        st.info(f"There is no error {escaped(str(wanted))} any more: all are shown.", icon=":material/info:")
        st.session_state.pop("e_no", None)
        st.query_params.pop("e_no", None)
    if len(numbers) == 2:
        return groups
    number = st.selectbox("Error number", numbers, key="e_no", bind="query-params", width=190)
    return [group for group in groups if number in (EVERY, str(group.number))]


def _table(view: DatabaseView, groups: list[ErrorGroup]) -> ErrorGroup:
    viewer, now = state.viewer(), state.now()
    frame = pd.DataFrame(
        {
            "state": ["over" if _over(group, view) else "goes on" for group in groups],
            "number": [str(group.number) for group in groups],
            "phase": [error_groups.phase_text(group.phase) for group in groups],
            "times": [len(group.errors) for group in groups],
            "first": [fmt.clock(group.first.entry_time, now, viewer.zone, viewer.local) for group in groups],
            "last": [fmt.clock(group.newest.entry_time, now, viewer.zone, viewer.local) for group in groups],
            "message": [group.newest.error_message for group in groups],
        }
    )
    widths = {"state": 80, "number": 75, "phase": 160, "times": 60, "first": 110, "last": 110}
    columns = {name: st.column_config.Column(width=width) for name, width in widths.items()}
    rows = [(view.name, group.number, group.phase) for group in groups]
    row = row_table(frame, "e_groups", "Errors by number and phase", 8, columns, rows=rows)
    return groups[row or 0]


def _over(group: ErrorGroup, view: DatabaseView) -> bool:
    return error_groups.over_since(group.newest, view) is not None


def error_drawer(view: DatabaseView, group: ErrorGroup) -> None:
    """One group in full: the newest error whole, its cause, the fix, where in the log; then all of it."""
    error = group.newest
    with st.container(border=True, gap="small", key="e_drawer"):
        st.markdown(
            f"## Msg {error.error_number}, Level {error.error_severity}, State {error.error_state}",
            anchors=False,
        )
        _state(view, group)
        st.code(error.error_message, language=None, wrap_lines=True)
        left, right = st.columns(2)
        with left:
            st.markdown(f"**Cause** {cause_of(error.error_number)}")
            _fix(view, error)
        with right:
            _place(view, error)
        if len(group.errors) > 1:
            with st.expander("Each time it was met", type="compact", key="e_all"):
                _occurrences(group)


def _state(view: DatabaseView, group: ErrorGroup) -> None:
    over, now, zone = error_groups.over_since(group.newest, view), state.now(), state.viewer().axis_zone
    times = f"{fmt.plural(len(group.errors), 'time')}, last {_when(group.newest)}"
    if over is None:
        st.markdown(f":red[:material/error: **goes on**] · {times}")
        return
    what = "the cleanup job no longer failed" if group.newest.session_id == 0 else "the log was read past it"
    when = fmt.moment_and_age(over, now, zone)
    st.markdown(f":green[:material/check_circle: **over**] · {times} · {what}, last {when}")


def _when(error: ScanError) -> str:
    return fmt.moment_and_age(error.entry_time, state.now(), state.viewer().axis_zone)


def _fix(view: DatabaseView, error: ScanError) -> None:
    facts = next(each.facts for each in _statuses() if each.facts.database.name == view.name)
    is_over = error_groups.over_since(error, view) is not None
    st.markdown("**Fix**, should it come back" if is_over else "**Fix**")
    st.code(fix_of(facts, error), language="bash", wrap_lines=True)


def _statuses() -> tuple[DatabaseStatus, ...]:
    status = state.snapshot().status
    return () if status is None else status.databases


def _place(view: DatabaseView, error: ScanError) -> None:
    st.markdown(f"**Phase** {error_groups.phase_text(error.phase_number)} · session {error.session_id}")
    texts = (("start_lsn", error.start_lsn), ("begin_lsn", error.begin_lsn))
    for name, text in (*texts, ("sequence_value", error.sequence_value)):
        lsn = error_groups.lsn_of(text)
        st.markdown(f"`{name}` " + ("0, none" if lsn is None else f"`{lsn}`"))
    _link(view, error)


def _link(view: DatabaseView, error: ScanError) -> None:
    """Leads to the changes from that place on, or the last before it where it was not captured."""
    instance = error_groups.instance_of(error, view.instances) or next(iter(view.instances), None)
    place, high = error_groups.place_of(error), view.watermarks.high
    if instance is None or place is None or high is None:
        st.caption("No place in the log belongs to it.")
        return
    parameters = {"db": view.name, "c_ci": instance.capture_instance}
    if place <= high:
        label = "Changes from this LSN on"
        parameters |= {"c_by": RANGE, "c_from": str(place), "c_to": ""}
    else:
        label = "Last changes before this LSN"
    st.page_link(
        st.session_state["pages"]["changes"],
        label=label,
        icon=":material/history:",
        query_params=parameters,
        help=f"of {instance.capture_instance}",
    )


def _occurrences(group: ErrorGroup) -> None:
    viewer, now = state.viewer(), state.now()
    zone = Zone.UTC if viewer.zone is Zone.RELATIVE else viewer.zone
    rows = [
        {
            "entry_time": fmt.clock(error.entry_time, now, zone, viewer.local),
            "session_id": error.session_id,
            "start_lsn": error.start_lsn,
            "begin_lsn": error.begin_lsn,
            "sequence_value": error.sequence_value,
            "error_message": error.error_message,
        }
        for error in group.errors
    ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key="e_times",
        height=table_height(len(rows), 10),
        alt="Every time this error was met",
    )
