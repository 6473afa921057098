"""The verdict: one sentence, then what is wrong, since when, and the fix to paste."""

from __future__ import annotations

import streamlit as st

from dashboard import format as fmt
from dashboard import state
from dashboard.components.problem import escaped
from dashboard.snapshot import DatabaseView, Snapshot
from dashboard.theme import STATUS
from engine.monitoring.diagnosis import Finding
from engine.monitoring.status import EngineStatus

CHECKS = (
    "the agent runs and serves queries",
    "every source answers, with the settings and rights capture needs",
    "every capture job that should run does",
    "the log is read without a break and is not held back beyond its limit",
    "latency and errors of the newest scans",
)


def verdict(snapshot: Snapshot) -> None:
    """The banner over the Overview: healthy with its list of checks, or what is wrong and what to do."""
    status = snapshot.status
    if status is not None and snapshot.failure is not None:
        _unknown(status)
        return
    captures = any(view.instances for view in snapshot.databases)
    if status is None or not (captures or status.findings):
        return  # the page says what to do first
    look = STATUS.get(str(status.verdict), STATUS["unknown"])
    with st.container(border=True, gap="xsmall", key="verdict"):
        st.markdown(f"## :{look.colour}[{look.icon} {look.word}] — {_sentence(snapshot)}", anchors=False)
        if status.findings:
            for number, finding in enumerate(status.findings):
                _finding(finding, is_in_sentence=number == 0)
        else:
            with st.expander("No problems found. What was checked?", type="compact"):
                st.markdown("\n".join(f"- {check}" for check in CHECKS))


def _unknown(status: EngineStatus) -> None:
    """What was found before the state could no longer be read is no verdict on now."""
    look, last = STATUS["unknown"], STATUS[str(status.verdict)]
    with st.container(border=True, gap="xsmall", key="verdict"):
        st.markdown(
            f"## :{look.colour}[{look.icon} {look.word}] — nothing is known since "
            f"{fmt.moment_and_age(status.taken, state.now())}",
            anchors=False,
        )
        st.caption(f"Then it was: {last.word.lower()}. All figures below are of that time.")


def _sentence(snapshot: Snapshot) -> str:
    status = snapshot.status
    findings = status.findings if status else ()
    if findings:
        first = escaped(findings[0].text.rstrip("."))
        return first + (f", and {fmt.plural(len(findings) - 1, 'more finding')}" if len(findings) > 1 else "")
    tables = sum(len({i.source_object_id for i in view.instances}) for view in snapshot.databases)
    behind = [seconds for view in snapshot.databases if (seconds := seconds_behind(view)) is not None]
    text = f"{fmt.plural(tables, 'table')} captured"
    return text + (f", capture {fmt.duration(max(behind))} behind" if behind else "")


def seconds_behind(view: DatabaseView) -> float | None:
    """How long ago the log was last read to its end; None before the first time."""
    read = view.watermarks.published_at
    return None if read is None else max(0.0, round((state.now() - read).total_seconds()))


def _finding(finding: Finding, is_in_sentence: bool) -> None:
    look = STATUS[str(finding.verdict)]
    since = f" · since {fmt.moment_and_age(finding.since, state.now())}" if finding.since else ""
    text = "" if is_in_sentence else f": {escaped(finding.text)}"
    st.markdown(f":{look.colour}[{look.icon}] **{escaped(finding.subject)}**{text}{since}")
    if finding.fix:
        st.code(finding.fix, language=None, wrap_lines=True)
