"""Errors as people need them: number, message, and what to do. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import CdcError

_FIXES = {
    229: "Ask for the gating role of this capture instance, or SELECT on its captured columns.",
    313: "Choose a range within the validity interval: **Clamp** does that.",
    22901: "Enable the database first: Tables, **Enable tables**.",
    22903: "Another capture process reads this log. Stop it, or wait until its lease ends.",
    22962: "Disable one of the two capture instances of this table first.",
    50001: "Check that the source server runs and that its DSN is right: `highwater doctor`.",
    50003: "The log no longer goes on where capture stopped: disable and enable the database again.",
    50004: "Start it: `highwater start`. Everything but change rows is shown without it.",
    50005: "Look at the capture job: it may be stopped, or slow.",
    50006: "This home was made by a newer Highwater: upgrade this one.",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """An error's one-line form, its text and what to do about it (may be empty)."""

    title: str
    text: str
    fix: str


def problem_of(error: BaseException) -> Problem:
    """What to show of an error; one that is not the engine's own keeps its type's name."""
    if isinstance(error, CdcError):
        title = f"Msg {error.number}, Level {error.severity}, State {error.state}"
        return Problem(title, str(error), _FIXES.get(error.number, ""))
    first = str(error).strip().splitlines()
    return Problem(
        type(error).__name__,
        first[0] if first else "no message",
        "`highwater status` says what runs; the log is below the home's folder `log`.",
    )
