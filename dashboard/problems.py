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


_CAUSES = {
    22852: "Cleanup could not delete all rows that are older than the retention. Readers don't see them.",
    22853: "Cleanup could not delete old rows of `cdc.lsn_time_mapping`. Readers don't see them.",
    22859: "Log records were read that give no change row, or a table's old rows are not in the log "
    "because its replica identity was changed.",
    22860: "A table was altered and nobody told the log of it (no event triggers): its columns can't be "
    "told apart.",
    22863: "Change rows could not be appended to the change tables: look at disk space and rights.",
    22903: "Another process reads the log of this database, mostly an agent of another start of the home.",
    22923: "Cleanup could not tell up to where changes are older than the retention. Nothing was deleted.",
    22924: "A run of the cleanup job ended early. Low endpoints that have moved stay moved.",
    22976: "A captured column got another type at the source, and values that are in the change table do not "
    "fit it.",
    50001: "The source did not answer, or refused the login.",
    50003: "The replication slot was lost or made anew, or the source is another server or timeline: log "
    "that capture needed is gone.",
    50011: "The control database did not answer.",
    50019: "The slot, the publication or schema `cdc` was dropped at the source by hand.",
}
_UNKNOWN_CAUSE = "Nothing more is known than what the message says."


def cause_of(number: int) -> str:
    """Why an error of that number comes up, in a sentence."""
    return _CAUSES.get(number, _UNKNOWN_CAUSE)


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
