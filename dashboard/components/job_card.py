"""The capture job: what it does, since when, its parameters, and how to start, stop and tune it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import streamlit as st

from dashboard import format as fmt
from dashboard import glossary, sessions, state, statements
from dashboard.components.dialog_work import dialog_work
from dashboard.components.dropped_job import dropped_job
from dashboard.components.form_field import FormField, changed
from dashboard.components.permission import permitted
from dashboard.components.problem import attempt, escaped, last_problem
from dashboard.components.statement_box import statement_box, statement_popover
from dashboard.components.tuner_card import tuner_card
from dashboard.dialogs import close_dialog, open_dialog
from dashboard.snapshot import DatabaseView
from engine.engine import Engine
from engine.model.job import AnyJob, CaptureParameters, CleanupParameters, Job, JobState, is_cleanup

_LOOKS = {
    JobState.RUNNING: ("green", ":material/play_circle:"),
    JobState.STARTING: ("blue", ":material/pending:"),
    JobState.STOPPING: ("orange", ":material/pending:"),
    JobState.STOPPED: ("gray", ":material/stop_circle:"),
    JobState.FAILED: ("red", ":material/error:"),
}


def job_line(view: DatabaseView, key: str) -> None:
    """One line: state, since, the parameters it runs with, and its buttons."""
    job = view.capture_job
    if job is None:
        return
    with st.container(border=True, key=key, gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center"):
            state_badge(job)
            st.markdown(f"**{job.name}** {_doing(job)}", width="content")
            st.space("stretch")
            job_buttons(view, key)
        if job.message.strip(".").lower() not in ("", job.state.value):
            st.caption(escaped(job.message))


def job_card(view: DatabaseView) -> None:
    """The job in full: its line, and its parameters as running, configured and by default."""
    job_line(view, "k_job")
    job = view.capture_job
    if job is None:
        return
    with st.container(border=True):
        parameter_table(job, CaptureParameters(), glossary.PARAMETERS)
        with st.expander("Change parameters", icon=":material/tune:", type="compact", key="k_tune"):
            parameter_form(view)
        tuner_card(view, job)


def no_job(view: DatabaseView) -> None:
    """Tables are tracked, but their capture job was dropped."""
    dropped_job(
        view,
        "capture",
        "It was dropped. The log is still read, so that it does not fill the source's disk, but only "
        "every half minute. Add the job to capture at the pace of its parameters again.",
        "k",
    )


def state_badge(job: AnyJob) -> None:
    """The state in a word, icon and colour. A cleanup job that does not run waits for its time."""
    colour, icon = _LOOKS[job.state]
    word = job.state.value
    if is_cleanup(job) and job.state is JobState.STOPPED:
        word, icon = "idle", ":material/schedule:"
    st.badge(word, icon=icon, color=colour)  # type: ignore[arg-type]


def _doing(job: Job) -> str:
    if not agent_is_alive():
        return ""  # nobody noted when it ended: the verdict says since when the agent is away
    since = fmt.moment_and_age(job.since, state.now())
    running = f" · {describe(job.running)}" if job.running else ""
    return f"since {since}{running}"


def agent_is_alive() -> bool:
    """Whether there is somebody who would do what a button asks for."""
    status = state.snapshot().status
    return status is not None and status.agent_is_alive


def describe(parameters: CaptureParameters) -> str:
    """``every 5 s, at most 500 × 10 transactions``."""
    pause = f"every {parameters.pollinginterval} s" if parameters.pollinginterval else "without pause"
    if not parameters.continuous:
        pause = "once"
    return f"{pause}, at most {parameters.maxtrans} × {parameters.maxscans} transactions"


def job_buttons(view: DatabaseView, key: str) -> None:
    """Start, or stop and restart; each confirms with its consequence. Off where nothing could be done."""
    job = view.capture_job
    if job is None:
        return

    is_off = job.state is JobState.STOPPING or not agent_is_alive() or state.snapshot().failure is not None

    def button(label: str, dialog: Callable[[str], None], icon: str, urged: bool = False) -> None:
        st.button(
            label,
            icon=icon,
            type="primary" if urged else "secondary",
            key=f"{key}_{label.split()[0].lower()}",
            **permitted("start_job", disabled=is_off),
            on_click=open_dialog,
            args=(dialog, view.name),
        )

    if job.state in (JobState.STOPPED, JobState.FAILED):
        button("Start", start_dialog, ":material/play_arrow:", urged=True)
        return
    button("Stop", stop_dialog, ":material/stop:")
    urged = needs_restart(job)
    button("Restart now" if urged else "Restart", restart_dialog, ":material/restart_alt:", urged)


def needs_restart(job: AnyJob) -> bool:
    """Whether it runs with other parameters than the ones configured."""
    return job.running is not None and job.running != job.configured


@st.dialog("Start capture", icon=":material/play_arrow:", on_dismiss=close_dialog)
def start_dialog(database: str) -> None:
    """Confirms a start."""
    st.write("Capture goes on where it stopped: everything committed since then is read from the log.")
    statement_box(statements.start_job(database))
    dialog_work(
        "Start",
        "job_start_confirm",
        f"Starting capture of {database}",
        lambda engine: engine.start_job(database),
    )


@st.dialog("Stop capture", icon=":material/stop:", on_dismiss=close_dialog)
def stop_dialog(database: str) -> None:
    """Confirms a stop, with what it means."""
    st.write(
        "Nothing is lost: the source keeps its log for capture until it is started again. "
        "Meanwhile the log grows and the high watermark stands still."
    )
    statement_box(statements.stop_job(database))
    dialog_work(
        "Stop",
        "job_stop_confirm",
        f"Stopping capture of {database}",
        lambda engine: engine.stop_job(database),
    )


@st.dialog("Restart capture", icon=":material/restart_alt:", on_dismiss=close_dialog)
def restart_dialog(database: str) -> None:
    """Confirms a restart: new parameters take effect."""
    st.write(
        "The job stops after its current cycle and starts with the configured parameters. Nothing is lost."
    )

    def restart(engine: Engine) -> None:
        engine.stop_job(database)
        engine.start_job(database)

    dialog_work("Restart", "job_restart_confirm", f"Restarting capture of {database}", restart)


def parameter_table(
    job: AnyJob, default: CaptureParameters | CleanupParameters, meanings: Mapping[str, str]
) -> None:
    """Each parameter as it runs, as configured, and its default; what differs says so."""
    rows = []
    for name, meaning in meanings.items():
        configured = getattr(job.configured, name)
        running = getattr(job.running, name) if job.running else None
        differs = running is not None and running != configured
        rows.append(
            {
                "parameter": name,
                "running with": fmt.DASH if running is None else _value(name, running),
                "configured": _value(name, configured)
                + ("  ⟳ takes effect after restart" if differs else ""),
                "default": _value(name, getattr(default, name)),
                "meaning": meaning,
            }
        )
    st.table(rows, border="horizontal", hide_index=True)
    if needs_restart(job):
        st.badge("takes effect after restart", icon=":material/restart_alt:", color="orange")


def _value(name: str, value: bool | int) -> str:
    if name == "retention":
        return fmt.retention(value)
    return _switch(value) if isinstance(value, bool) else fmt.number(value)


def _switch(value: bool) -> str:
    return "1 (on)" if value else "0 (off)"


_SAVED = "k_saved"


class _Form:
    """The fields of a capture job's parameters."""

    def __init__(self, database: str, configured: CaptureParameters) -> None:
        of = (database, configured)
        self._configured = configured
        self.maxtrans = FormField("k_maxtrans", configured.maxtrans, of)
        self.maxscans = FormField("k_maxscans", configured.maxscans, of)
        self.continuous = FormField("k_continuous", configured.continuous, of)
        self.interval = FormField("k_pollinginterval", configured.pollinginterval, of)

    @property
    def typed(self) -> CaptureParameters:
        """The parameters as they would be saved."""
        is_continuous = bool(self.continuous.typed)
        return CaptureParameters(
            maxtrans=int(self.maxtrans.typed),
            maxscans=int(self.maxscans.typed),
            continuous=is_continuous,
            pollinginterval=int(self.interval.typed) if is_continuous else 0,
        )

    @property
    def changed(self) -> dict[str, Any]:
        """Those of them that differ from the configured ones."""
        return changed(self.typed, self._configured)


def parameter_form(view: DatabaseView) -> None:
    """Tunes the job as sp_cdc_change_job does, with the ceiling the new values would give."""
    job = view.capture_job
    if job is None:
        return
    form = _Form(view.name, job.configured)
    _parameter_fields(form)
    wanted = form.typed
    st.caption(_preview(view, wanted))
    last_problem(f"k_not_saved:{view.name}")
    if st.session_state.pop(_SAVED, False):  # not in the callback: Streamlit draws that over the page's top
        st.toast("Saved. It takes effect when the job is restarted.", icon=":material/save:")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Save",
            type="primary",
            icon=":material/save:",
            key="k_save",
            on_click=_save,
            args=(view.name, form),
            **permitted("change_job", disabled=not form.changed),
        )
        statement_popover(statements.change_job(view.name, **(form.changed or asdict(wanted))))


def _parameter_fields(form: _Form) -> None:
    fields = st.grid(4, min_column_width=150)
    for label, field, step in (("maxtrans", form.maxtrans, 100), ("maxscans", form.maxscans, 1)):
        fields.number_input(label, 1, 2_147_483_647, field.begins, step=step, key=field.key)
    switches = [True, False]
    fields.selectbox(
        "continuous",
        switches,
        switches.index(form.continuous.begins),
        format_func=_switch,
        key=form.continuous.key,
    )
    is_continuous = bool(form.continuous.typed)
    fields.number_input(
        "pollinginterval (s)",
        0,
        86_399,
        form.interval.begins if is_continuous else 0,
        step=1,
        key=form.interval.key if is_continuous else "k_no_pollinginterval",
        disabled=not is_continuous,
        help="0 … 86,399 seconds. Without `continuous` it is 0.",
    )


def _save(database: str, form: _Form) -> None:
    st.session_state[_SAVED] = attempt(
        lambda: state.engine().change_job(database, **form.changed), f"k_not_saved:{database}"
    )
    state.changed()


def _preview(view: DatabaseView, wanted: CaptureParameters) -> str:
    now = state.now()
    start = now - timedelta(hours=1)
    recent = sessions.reaching_into(view.history, start)
    measured = [b.transactions for b in sessions.throughput(recent, start, now, 10) if b.transactions]
    peak = f"the peak of the last hour was {fmt.rate(max(measured), 'tran/s')}" if measured else ""
    if wanted.ceiling is None:
        text = (
            "No ceiling: the job reads as fast as it can"
            if wanted.continuous
            else "One drain, then the job ends"
        )
        return text + (f"; {peak}." if peak else ".")
    text = f"Ceiling {fmt.rate(wanted.ceiling, 'tran/s')}"
    if measured and max(measured) >= wanted.ceiling * 0.8:
        return f"{text}: too close, {peak}."
    return text + (f"; {peak}." if peak else ".")
