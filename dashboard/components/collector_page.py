"""What the page Collector shows: one collection set, its runs and gaps, and where it collects into."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pandas as pd
import streamlit as st

from dashboard import collecting, glossary, state, statements
from dashboard import format as fmt
from dashboard.charts.snapshots import snapshots_chart
from dashboard.collecting import Collected, schedule_name
from dashboard.components.chart_card import chart_card
from dashboard.components.dialog_work import dialog_work
from dashboard.components.form_field import FormField
from dashboard.components.job_card import agent_is_alive
from dashboard.components.operation_box import follow_operation, operation_failure, operation_progress
from dashboard.components.permission import permitted
from dashboard.components.problem import attempt, escaped, last_problem, problem_box
from dashboard.components.statement_box import statement_box, statement_popover
from dashboard.dialogs import close_dialog, open_dialog
from dashboard.format import Zone
from dashboard.operations import Operation
from dashboard.theme import table_height
from engine.collector.parameters import parse_parameters
from engine.engine import Engine
from engine.errors import CdcError, CollectionSetEmpty
from engine.model.collection import CollectedTable, CollectionRun, CollectionSet
from engine.model.job import RunOutcome

RUNS = 400
"""Newest runs that are looked at: a day and more of every five minutes."""
_SAVED = "o_saved"
_OUTCOMES = {
    RunOutcome.RUNNING: "▶ running",
    RunOutcome.SUCCEEDED: "✓ succeeded",
    RunOutcome.FAILED: "✕ failed",
    RunOutcome.STOPPED: "■ stopped",
    RunOutcome.INTERRUPTED: "! interrupted",
}


@st.cache_resource(ttl=2.0, show_spinner=False)
def _sets() -> Sequence[CollectionSet]:
    return state.engine().collection_sets()


@st.cache_resource(ttl=2.0, max_entries=20, show_spinner=False)
def _runs(number: int) -> Sequence[CollectionRun]:
    return state.engine().collection_runs(number, RUNS)


def forget() -> None:
    """After an action: what is shown next is read anew."""
    _sets.clear()
    _runs.clear()
    state.changed()


def collector_page() -> None:
    """The set in the address, or the default one, at every tick."""
    try:
        sets = _sets()
        found = _chosen(sets)
        runs = _runs(found.collection_set_id)
    except CdcError as error:
        problem_box(error, "reading the collection sets")
        return
    what = collecting.collected(runs, state.now())
    _card(found, what, runs)
    _chart(runs, what)
    left, right = st.columns([3, 2])
    with left:
        _run_table(runs)
    with right:
        _tables(found, what)


def _chosen(sets: Sequence[CollectionSet]) -> CollectionSet:
    names = [each.name for each in sets]
    wanted = st.session_state.get("o_set") or st.query_params.get("o_set")
    if wanted not in (None, *names):
        st.info(f"There is no collection set {escaped(str(wanted))}: the default one is shown.")
        st.session_state.pop("o_set", None)
        st.query_params.pop("o_set", None)
    if len(names) == 1:
        return sets[0]
    name = st.selectbox("Collection set", names, key="o_set", bind="query-params", width=320)
    return next(each for each in sets if each.name == name)


def _card(found: CollectionSet, what: Collected, runs: Sequence[CollectionRun]) -> None:
    with st.container(border=True, key="o_card", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center"):
            if found.is_running:
                st.badge("running", icon=":material/play_circle:", color="green")
            else:
                st.badge("stopped", icon=":material/stop_circle:", color="gray")
            st.markdown(f"**{escaped(found.name)}** · {_words(found)}", width="content")
            st.space("stretch")
            _buttons(found)
        _verdict(found, what, len(runs))
        _progress(found)
        with st.expander(
            "Change schedule and days kept", icon=":material/tune:", type="compact", key="o_edit"
        ):
            _form(found)


def _words(found: CollectionSet) -> str:
    kept = fmt.plural(found.days_until_expiration, "day") if found.days_until_expiration else "for ever"
    text = f"`{schedule_name(found)}` · kept {kept}"
    if found.is_running and found.next_run is not None:
        text += f" · next {fmt.ago(found.next_run, state.now())}"
    return text


def _verdict(found: CollectionSet, what: Collected, looked_at: int) -> None:
    """Whether history is collected, in a sentence."""
    now, newest = state.now(), what.newest
    since = "nothing was ever collected" if newest is None else f"the last snapshot is of {_when(newest)}"
    open_gap = next((gap for gap in what.gaps if gap.end is None), None)
    if not found.is_running:
        st.markdown(
            f"## :orange[:material/warning: History is not collected]: the set is stopped, {since}",
            anchors=False,
        )
    elif not agent_is_alive():
        st.markdown(
            f"## :red[:material/error: History is not collected]: the agent is away, {since}", anchors=False
        )
    elif newest is None:
        st.markdown("## :blue[:material/pending: The first snapshot is awaited]", anchors=False)
    elif open_gap is not None:
        why = f": {escaped(open_gap.reason)}" if open_gap.reason else ""
        st.markdown(
            f"## :red[:material/error: Snapshots are missing] since "
            f"{fmt.moment_and_age(open_gap.start, now)}{why}",
            anchors=False,
        )
    else:
        past = fmt.plural(len(what.gaps), "gap") if what.gaps else "no gap"
        st.markdown(
            f"## :green[:material/check_circle: History is collected]: last snapshot "
            f"{fmt.ago(newest.snapshot_time, now)}, "
            f"{past} among the last {fmt.plural(looked_at, 'run')}",
            anchors=False,
        )


def _when(run: CollectionRun) -> str:
    return fmt.moment_and_age(run.snapshot_time, state.now(), state.viewer().axis_zone)


def _buttons(found: CollectionSet) -> None:
    is_off = state.snapshot().failure is not None
    operation = state.operations().get(_key(found))
    is_busy = operation is not None and operation.is_active
    statement_popover(statements.collect(found.name))
    st.button(
        "Collect now",
        icon=":material/photo_camera:",
        key="o_collect",
        on_click=_collect,
        args=(found,),
        **permitted("collect", disabled=is_off or is_busy or not agent_is_alive()),
    )
    label, dialog = ("Stop", stop_dialog) if found.is_running else ("Start", start_dialog)
    st.button(
        label,
        icon=":material/stop:" if found.is_running else ":material/play_arrow:",
        type="secondary" if found.is_running else "primary",
        key=f"o_{label.lower()}",
        on_click=open_dialog,
        args=(dialog, found.name),
        **permitted(f"{label.lower()}_collection_set", disabled=is_off),
    )


def _key(found: CollectionSet) -> str:
    return f"collect:{found.collection_set_id}"


def _collect(found: CollectionSet) -> None:
    engine = state.engine()

    def work(operation: Operation) -> CollectionRun:
        operation.step("waiting for the agent to take the snapshot")
        return engine.collect(found.collection_set_id)

    state.operations().submit(_key(found), "Collecting", work)


def _progress(found: CollectionSet) -> None:
    operation = state.operations().get(_key(found))
    if operation is None:
        return
    if operation.is_active:
        operation_progress(operation, "o_progress")
    elif not operation_failure(operation):
        run: CollectionRun = operation.result
        st.caption(
            f"Snapshot {run.snapshot_id} was taken on demand {fmt.ago(operation.finished, state.now())}: "
            f"{fmt.plural(run.rows, 'row')}."
        )


@st.dialog("Start collecting", icon=":material/play_arrow:", on_dismiss=close_dialog)
def start_dialog(name: str) -> None:
    """Confirms a start."""
    st.write("The agent takes the first snapshot as soon as it sees it, then by the schedule.")
    statement_box(statements.start_collection_set(name))
    dialog_work(
        "Start", "o_start_confirm", f"Starting collection set {name}", lambda engine: _start(engine, name)
    )


def _start(engine: Engine, name: str) -> None:
    with suppress(CollectionSetEmpty):  # a warning: it runs, and the page shows that it collects nothing
        engine.start_collection_set(name)
    forget()


@st.dialog("Stop collecting", icon=":material/stop:", on_dismiss=close_dialog)
def stop_dialog(name: str) -> None:
    """Confirms a stop, with what it means."""
    st.write(
        "Until it is started again history has a gap that nothing fills later. What was collected stays "
        "until "
        "it expires."
    )
    statement_box(statements.stop_collection_set(name))
    dialog_work(
        "Stop", "o_stop_confirm", f"Stopping collection set {name}", lambda engine: _stop(engine, name)
    )


def _stop(engine: Engine, name: str) -> None:
    engine.stop_collection_set(name)
    forget()


class _Form:
    """The fields of a collection set's schedule and expiration."""

    def __init__(self, found: CollectionSet) -> None:
        of = (found.collection_set_id, found.schedule, found.days_until_expiration)
        self.cron = FormField("o_schedule", schedule_name(found), of)
        self.days = FormField("o_days", found.days_until_expiration, of)

    @property
    def typed(self) -> tuple[str | None, int | None]:
        """Schedule and days; None where one is to stay."""
        schedule, days = str(self.cron.typed or "").strip(), int(self.days.typed or 0)
        return (
            None if schedule in ("", self.cron.begins) else schedule,
            None if days == self.days.begins else days,
        )


def _form(found: CollectionSet) -> None:
    form = _Form(found)
    names = [each.name for each in state.engine().collector_schedules()]
    if form.cron.begins not in names:
        names = [form.cron.begins, *names]
    fields = st.grid(2, min_column_width=220)
    fields.selectbox(
        "Schedule",
        names,
        names.index(form.cron.begins),
        key=form.cron.key,
        accept_new_options=True,
        help="One that the collector comes with, or cron text, such as `*/2 * * * *`.",
    )
    fields.number_input(
        "Days kept",
        0,
        32_767,
        form.days.begins,
        step=1,
        key=form.days.key,
        help="0: for ever. Fewer days expire what is older at once.",
    )
    schedule, days = form.typed
    last_problem(_not_saved(found))
    if st.session_state.pop(_SAVED, False):
        st.toast("Saved. It counts at once.", icon=":material/save:")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Save",
            type="primary",
            icon=":material/save:",
            key="o_save",
            on_click=_save,
            args=(found, form),
            **permitted(
                "update_collection_set",
                disabled=schedule is None and days is None,
            ),
        )
        shown = form.days.begins if schedule is None and days is None else days
        statement_popover(statements.update_collection_set(found.name, schedule, shown))


def _not_saved(found: CollectionSet) -> str:
    return f"o_not_saved:{found.collection_set_id}"


def _save(found: CollectionSet, form: _Form) -> None:
    schedule, days = form.typed
    number = found.collection_set_id
    st.session_state[_SAVED] = attempt(
        lambda: state.engine().update_collection_set(number, schedule=schedule, days_until_expiration=days),
        _not_saved(found),
    )
    forget()


def _chart(runs: Sequence[CollectionRun], what: Collected) -> None:
    chart = snapshots_chart(runs, what.gaps, state.viewer().axis(state.now()))
    chart_card("Snapshots", chart, "o_snapshots", glossary.SNAPSHOTS, state.choose_range)


def _run_table(runs: Sequence[CollectionRun]) -> None:
    viewer, now = state.viewer(), state.now()
    zone = Zone.UTC if viewer.zone is Zone.RELATIVE else viewer.zone
    with st.container(border=True, gap="xsmall"):
        st.markdown("**Runs**, newest first")
        if not runs:
            st.caption("None yet.")
            return
        frame = pd.DataFrame(
            {
                "snapshot": [run.snapshot_id for run in runs],
                "taken": [fmt.clock(run.snapshot_time, now, zone, viewer.local) for run in runs],
                "took": [_took(run) for run in runs],
                "outcome": [_OUTCOMES[run.outcome] for run in runs],
                "rows": [run.rows for run in runs],
                "message": [run.message for run in runs],
            }
        )
        st.dataframe(
            frame,
            hide_index=True,
            key="o_runs",
            height=table_height(len(frame), 10),
            column_config={"rows": st.column_config.NumberColumn(format="localized", width=70)},
            alt="Runs of the collection set",
        )


def _took(run: CollectionRun) -> str:
    return (
        fmt.DASH if run.end_time is None else fmt.duration((run.end_time - run.snapshot_time).total_seconds())
    )


def _tables(found: CollectionSet, what: Collected) -> None:
    """Where it collects into; sizes are measured anew with each snapshot."""
    number = found.collection_set_id
    newest = 0 if what.newest is None else what.newest.snapshot_id
    key = f"collected_tables:{number}:{newest}"
    engine = state.engine()
    operation = state.operations().get(key) or state.operations().submit(
        key, "Measuring", lambda _work: engine.collected_tables(number)
    )
    operation.wait(0.1)
    with st.container(border=True, gap="xsmall"):
        st.markdown("**Collected into** `custom_snapshots`", help=glossary.COLLECTED_INTO)
        if operation.is_active:
            st.skeleton(height=150)
            follow_operation(operation)
        elif not operation_failure(operation):
            _sizes(found, operation.result)


def _sizes(found: CollectionSet, sizes: Sequence[CollectedTable]) -> None:
    views = {
        query.output_table: query.view.name
        for item in found.items
        for query in parse_parameters(item.parameters).queries
    }
    frame = pd.DataFrame(
        {
            "table": [each.output_table for each in sizes],
            "of": [views.get(each.output_table, "") for each in sizes],
            "rows": [each.rows for each in sizes],
            "files": [each.files for each in sizes],
            "size": [fmt.size(each.size_bytes) for each in sizes],
        }
    )
    st.dataframe(
        frame,
        hide_index=True,
        key="o_tables",
        height=table_height(len(frame), 8),
        column_config={
            name: st.column_config.NumberColumn(format="localized", width=70) for name in ("rows", "files")
        },
        alt="Tables that are collected into",
    )
    st.caption(f"{fmt.size(sum(each.size_bytes for each in sizes))} in all")
