"""What else happened in a range of the history: job parameters changed, DDL, cleanup. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from dashboard import format as fmt
from dashboard.sessions import align
from engine.model.activity import Action, Outcome
from engine.model.ddl_history import SchemaChange
from engine.model.job import JobRun, RunOutcome

LONGEST = 120
"""Characters of a statement that a mark shows."""


class MarkKind(StrEnum):
    """What a mark tells of."""

    CONFIGURATION = "configuration"
    DDL = "DDL"
    CLEANUP = "cleanup"


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at a moment, in words."""

    kind: MarkKind
    at: datetime
    text: str


_CONFIGURED = {
    "add_job": "job added",
    "drop_job": "job dropped",
    "update_job_step": "another step of the capture job",
}
_PARAMETER = re.compile(r"@(\w+)\s*=\s*(N?'(?:[^']|'')*'|[^,;\s]+)")


def configurations(actions: Iterable[Action]) -> list[Mark]:
    """Changes of jobs that went well, with the parameters that were given and who gave them."""
    found = []
    for action in actions:
        if action.outcome is not Outcome.OK:
            continue
        if action.command == "change_job":
            text = _given(action.statement)
        elif action.command in _CONFIGURED:
            text = _CONFIGURED[action.command]
        else:
            continue
        found.append(Mark(MarkKind.CONFIGURATION, action.started, f"{text}, by {action.user_name}"))
    return found


def _given(statement: str) -> str:
    """``job_type = capture, maxtrans = 700``."""
    given = (f"{name} = {value.lstrip('N').strip(chr(39))}" for name, value in _PARAMETER.findall(statement))
    return ", ".join(given)


def cleanups(runs: Iterable[JobRun], actions: Iterable[Action]) -> list[Mark]:
    """Runs of the cleanup job, and change tables that were cleaned up by themselves.

    Those are not named: whoever looks may not be allowed to read all of them.
    """
    found = [Mark(MarkKind.CLEANUP, run.start_time, _run_text(run)) for run in runs]
    for action in actions:
        if action.command == "cleanup_change_table" and action.outcome is Outcome.OK:
            text = f"one change table, by {action.user_name}"
            found.append(Mark(MarkKind.CLEANUP, action.started, text))
    return found


def _run_text(run: JobRun) -> str:
    deleted = f"{fmt.plural(run.deleted_rows, 'row')} deleted"
    return deleted if run.outcome is RunOutcome.SUCCEEDED else f"{run.outcome}, {deleted}"


def statements(changes: Iterable[SchemaChange]) -> list[Mark]:
    """DDL on captured tables; a statement once, however many instances it met."""
    found: dict[tuple[object, str], Mark] = {}
    for change in changes:
        row = change.history
        table = f"{row.source_schema}.{row.source_table}"
        command = " ".join(row.ddl_command.split()) or "not told"
        text = f"{table}: {command if len(command) <= LONGEST else command[:LONGEST] + '…'}"
        found[row.ddl_lsn, table] = Mark(MarkKind.DDL, row.ddl_time, text)
    return list(found.values())


def within(marks: Iterable[Mark], start: datetime, end: datetime) -> list[Mark]:
    """Those of [start, end), in order of time."""
    return sorted((each for each in marks if start <= each.at < end), key=lambda each: (each.at, each.kind))


def together(marks: Iterable[Mark], kind: MarkKind, step: int) -> list[Mark]:
    """Marks of a kind, those of one stretch of so many seconds as one: a chart has room for no more."""
    stretches: dict[datetime, list[Mark]] = {}
    for each in marks:
        if each.kind is kind:
            stretches.setdefault(align(each.at, step), []).append(each)
    return [_as_one(found) for found in stretches.values()]


def _as_one(found: Sequence[Mark]) -> Mark:
    if len(found) == 1:
        return found[0]
    return Mark(found[0].kind, found[0].at, f"{found[0].text} and {len(found) - 1} more")


def counts(marks: Sequence[Mark]) -> dict[MarkKind, str]:
    """How many there are of each kind that there are: ``2 cleanups``."""
    numbers = {kind: sum(1 for each in marks if each.kind is kind) for kind in _NOUNS}
    return {kind: fmt.plural(count, _NOUNS[kind]) for kind, count in numbers.items() if count}


_NOUNS = {
    MarkKind.CONFIGURATION: "configuration change",
    MarkKind.DDL: "DDL statement",
    MarkKind.CLEANUP: "cleanup",
}
