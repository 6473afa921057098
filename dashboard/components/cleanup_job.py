"""The cleanup job: when it ran and runs next, what it keeps, and how to run and change it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import tzinfo
from typing import Any

import streamlit as st

from dashboard import format as fmt
from dashboard import glossary, state, statements
from dashboard.components.dialog_work import dialog_work
from dashboard.components.dropped_job import dropped_job
from dashboard.components.form_field import FormField, changed
from dashboard.components.instance_cleanup import instance_button
from dashboard.components.job_card import agent_is_alive, parameter_table, state_badge
from dashboard.components.permission import permitted
from dashboard.components.problem import attempt, escaped, last_problem
from dashboard.components.statement_box import statement_box, statement_popover
from dashboard.dialogs import close_dialog, open_dialog
from dashboard.snapshot import DatabaseView
from engine.model.cleanup import CleanupPreview
from engine.model.job import CleanupJob, CleanupParameters, JobState
from engine.model.schedule import ScheduleUnreadable, next_run
from engine.settings import Settings

_SAVED, _TRY = "l_saved", "l_try"
_LONGEST, _MOST = 52_594_800, 2_147_483_647
_UNDER_WAY = (JobState.STARTING, JobState.RUNNING, JobState.STOPPING)


def cleanup_job_card(view: DatabaseView, plan: CleanupPreview | None) -> None:
    """State, last and next run, buttons, progress, parameters; without a job, how to add it."""
    job = view.cleanup_job
    if job is None:
        _no_job(view)
        return
    with st.container(border=True, key="l_job", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center"):
            state_badge(job)
            st.markdown(f"**{job.name}** {_when(job)}", width="content")
            st.space("stretch")
            _buttons(view, job)
        _last(view, job, plan)
    with st.container(border=True):
        parameter_table(job, CleanupParameters(), glossary.CLEANUP_PARAMETERS)
        with st.expander("Change parameters", icon=":material/tune:", type="compact", key="l_tune"):
            _form(view, job)


def is_under_way(job: CleanupJob | None) -> bool:
    """Whether a run is under way."""
    return job is not None and job.state in _UNDER_WAY


def _when(job: CleanupJob) -> str:
    if job.schedule is None:
        return "· no schedule: it runs when it is started"
    if job.next_run is None:
        return f"· schedule `{job.schedule}`"
    now, zone = state.now(), state.viewer().axis_zone
    return f"· schedule `{job.schedule}` · next run {fmt.moment_and_age(job.next_run, now, zone)}"


def _buttons(view: DatabaseView, job: CleanupJob) -> None:
    is_off = not agent_is_alive() or state.snapshot().failure is not None
    instance_button(view)
    if is_under_way(job):
        st.button(
            "Stop",
            icon=":material/stop:",
            key="l_stop",
            on_click=open_dialog,
            args=(stop_dialog, view.name),
            **permitted("stop_job", disabled=is_off or job.state is JobState.STOPPING),
        )
        return
    st.button(
        "Run now",
        icon=":material/play_arrow:",
        key="l_run",
        on_click=open_dialog,
        args=(run_dialog, view.name),
        **permitted("start_job", disabled=is_off),
    )


def _last(view: DatabaseView, job: CleanupJob, plan: CleanupPreview | None) -> None:
    run = job.last_run
    if run is None:
        st.caption("It has not run yet.")
        return
    now, zone = state.now(), state.viewer().axis_zone
    if is_under_way(job):
        told = f"{fmt.plural(run.deleted_rows, 'row')} deleted so far"
        total = plan.rows if plan is not None else 0
        if total:
            st.progress(min(1.0, run.deleted_rows / total), text=f"{told} of {fmt.number(total)}")
        else:
            st.progress(0.0, text=told)
        return
    text = (
        f"Last run {fmt.moment_and_age(run.start_time, now, zone)} **{run.outcome}**: {escaped(run.message)}"
    )
    if job.state is JobState.FAILED:
        st.error(text, icon=":material/error:")
    else:
        st.caption(text)


def _no_job(view: DatabaseView) -> None:
    dropped_job(
        view,
        "cleanup",
        "It was dropped, so change tables keep everything and grow. Added again it runs daily at 02:00 and "
        "keeps three days unless it is told otherwise; it does not run before you start it or that time "
        "comes.",
        "l",
        start_job=False,
    )


@st.dialog("Run cleanup now", width="medium", icon=":material/cleaning_services:", on_dismiss=close_dialog)
def run_dialog(database: str) -> None:
    """What goes, and the name typed before it does."""
    preview: CleanupPreview | None = st.session_state.get(f"l_plan:{database}")
    st.markdown(_what_goes(preview))
    statement_box(statements.start_job(database, "cleanup"))
    typed = st.text_input(
        f"Type **{escaped(database)}** to confirm", key="l_name", live=True, autocomplete="off"
    )
    dialog_work(
        "Run",
        "l_run_confirm",
        f"Starting cleanup of {database}",
        lambda engine: engine.start_job(database, "cleanup"),
        icon=":material/play_arrow:",
        disabled=typed != database,
    )


def _what_goes(preview: CleanupPreview | None) -> str:
    if preview is None:
        return (
            "Changes older than the retention are deleted, and can't be asked for any more. What exactly "
            "goes is not worked out yet."
        )
    tables = sum(1 for each in preview.tables if each.rows and each.capture_instance)
    lines = [
        f"This deletes **{fmt.plural(preview.rows, 'row')}** of {fmt.plural(tables, 'change table')} and of "
        f"`cdc.lsn_time_mapping`, in {fmt.plural(preview.statements, 'statement')}. No change from before "
        f"{fmt.moment(preview.low_time, state.viewer().axis_zone)} can be asked for any more: whoever still "
        "asks gets an error."
    ]
    lines += [f"- {escaped(str(each))}" for each in preview.held]
    lines += [
        f"- Client **{escaped(each.name)}** was silent for too long: it is dropped."
        for each in preview.dropped
    ]
    return "\n".join(lines)


@st.dialog("Stop cleanup", icon=":material/stop:", on_dismiss=close_dialog)
def stop_dialog(database: str) -> None:
    """Confirms a stop, with what it means."""
    st.write(
        "It ends after the statement that it is at. Low watermarks have moved already; the next run deletes "
        "what is left below them."
    )
    statement_box(statements.stop_job(database, "cleanup"))
    dialog_work(
        "Stop",
        "l_stop_confirm",
        f"Stopping cleanup of {database}",
        lambda engine: engine.stop_job(database, "cleanup"),
    )


class _Form:
    """The fields of a cleanup job's parameters and schedule."""

    def __init__(self, database: str, job: CleanupJob) -> None:
        of = (database, job.configured, job.schedule)
        self._configured = job.configured
        self.retention = FormField("l_retention", job.configured.retention, of)
        self.threshold = FormField("l_threshold", job.configured.threshold, of)
        self.cron = FormField("l_schedule", job.schedule or "", of)

    @property
    def typed(self) -> CleanupParameters:
        """The parameters as they would be saved."""
        return CleanupParameters(int(self.retention.typed), int(self.threshold.typed))

    @property
    def changed(self) -> dict[str, Any]:
        """What differs from the job as it is configured."""
        schedule = {} if self.schedule is None else {"schedule": self.schedule}
        return changed(self.typed, self._configured) | schedule

    @property
    def schedule(self) -> str | None:
        """Another schedule than the job has; None: the same."""
        typed = str(self.cron.typed or "").strip()
        return None if typed == self.cron.begins else typed


def _form(view: DatabaseView, job: CleanupJob) -> None:
    """Changes the job as sp_cdc_change_job does; what it would do then can be looked at first."""
    form = _Form(view.name, job)
    fields = st.grid(3, min_column_width=200)
    for label, field, most, step in (
        ("retention (minutes)", form.retention, _LONGEST, 1440),
        ("threshold (rows)", form.threshold, _MOST, 1000),
    ):
        fields.number_input(label, 1, most, field.begins, step=step, key=field.key)
    zone = Settings().zone
    fields.text_input(f"schedule (cron, {zone})", form.cron.begins, key=form.cron.key, help=_CRON)
    wanted, schedule = form.typed, form.schedule
    st.caption(
        f"Keeps {fmt.retention(wanted.retention)} before the last captured commit. Counts from the next "
        "run on. " + _following(job.schedule or "" if schedule is None else schedule, zone)
    )
    last_problem(f"l_not_saved:{view.name}")
    if st.session_state.pop(_SAVED, False):
        st.toast("Saved.", icon=":material/save:")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "What would go?",
            icon=":material/visibility:",
            disabled=wanted == job.configured,
            key="l_what",
            on_click=try_parameters,
            args=(view.name, wanted),
        )
        st.button(
            "Save",
            type="primary",
            icon=":material/save:",
            key="l_save",
            on_click=_save,
            args=(view.name, form),
            **permitted("change_job", disabled=not form.changed, job_type="cleanup"),
        )
        given = form.changed or asdict(wanted)
        statement_popover(statements.change_job(view.name, "cleanup", **given))


_CRON = (
    "Minute, hour, day of month, month, day of week, as in cron: `0 2 * * *` is daily at 02:00. "
    "Empty: it runs only when it is started."
)


def _following(schedule: str, zone: tzinfo) -> str:
    """When a schedule would have the job run next; what is wrong with it where it is none."""
    if not schedule:
        return "Without a schedule it runs only when it is started."
    try:
        following = next_run(schedule, state.now(), zone)
    except ScheduleUnreadable as error:
        return f":red[:material/error: That is no schedule: {escaped(str(error))}.]"
    return f"Next run {fmt.moment_and_age(following, state.now(), state.viewer().axis_zone)}."


def try_parameters(database: str, parameters: CleanupParameters | None) -> None:
    """The plan shows what these would do; None: the job's own."""
    st.session_state[_TRY] = None if parameters is None else (database, parameters)


def tried_parameters(database: str) -> CleanupParameters | None:
    """Parameters that are looked at and not saved."""
    tried = st.session_state.get(_TRY)
    return tried[1] if tried is not None and tried[0] == database else None


def _save(database: str, form: _Form) -> None:
    st.session_state[_SAVED] = attempt(
        lambda: state.engine().change_job(database, "cleanup", **form.changed), f"l_not_saved:{database}"
    )
    try_parameters(database, None)
    state.changed()
