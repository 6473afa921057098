"""What other capture parameters would have done to what came in, and which of them to take. Pure.

A model, not a replay: what was captured in a stretch is taken for what came in, evenly. A scan costs a fixed
time and one for each of its transactions, both as the history tells. A job drains the log, at most
``maxtrans`` times ``maxscans`` transactions at a time, then pauses for ``pollinginterval``; what is left over
has to wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import median

from engine.model.collection import HistoryPoint
from engine.model.job import CaptureParameters

GOALS = {
    "5 s": timedelta(seconds=5),
    "10 s": timedelta(seconds=10),
    "30 s": timedelta(seconds=30),
    "1 min": timedelta(minutes=1),
    "5 min": timedelta(minutes=5),
}
"""How soon after its commit a change is to be there, at worst."""
HEADROOM = 2.0
"""How far the ceiling is to be above the busiest stretch."""
LEAST_COST = 0.0005
"""Seconds that a transaction costs at least: sessions tell their duration in whole seconds."""
_INTERVALS = (60, 30, 15, 10, 5, 2, 1, 0)
_TRANS = (500, 1000, 2000, 5000, 10_000)
_SCANS = (10, 20, 50)
_LEAST_PAUSE = 0.25
"""Seconds from one look at a quiet log to the next, where none is asked for."""


@dataclass(frozen=True, slots=True)
class Load:
    """What came in: transactions of each stretch of ``step`` seconds; seconds that one, and a scan, costs."""

    transactions: tuple[int, ...]
    step: int
    cost: float
    scan: float = 0.0

    @property
    def peak(self) -> float:
        """Transactions a second of the busiest stretch."""
        return max(self.transactions, default=0) / self.step


@dataclass(frozen=True, slots=True)
class Outcome:
    """What parameters would have done.

    ceiling: transactions a second that they can take, the work included. worst: seconds from a commit to its
    capture, at most; behind: seconds with a backlog; drains: passes over the log an hour while it is quiet.
    """

    parameters: CaptureParameters
    ceiling: float
    worst: float
    behind: int
    drains: float

    def meets(self, goal: timedelta, load: Load) -> bool:
        """Whether all would have been there in time, and there is room for more."""
        return self.worst <= goal.total_seconds() and self.ceiling >= HEADROOM * load.peak


def load_of(points: Iterable[HistoryPoint], step: int) -> Load:
    """The load of a database's history; stretches without a session had none."""
    found = sorted(points, key=lambda point: point.start)
    if not found:
        return Load((), step, LEAST_COST)
    first = found[0].start
    count = int((found[-1].start - first).total_seconds()) // step + 1
    transactions = [0] * count
    for point in found:
        transactions[int((point.start - first).total_seconds()) // step] += point.tran_count
    return Load(tuple(transactions), step, *_costs(found))


def _costs(points: Sequence[HistoryPoint]) -> tuple[float, float]:
    """Seconds of a transaction and of a scan.

    Light scans tell what a scan costs by itself, the heaviest tenth what transactions add to that: where none
    was heavy, a transaction costs next to nothing, rather than its share of a scan.
    """
    worked = sorted(
        (point for point in points if point.sessions and point.tran_count),
        key=lambda point: point.tran_count / point.sessions,
    )
    if not worked:
        return LEAST_COST, 0.0
    light = worked[: max(1, len(worked) // 2)]
    scan = median(point.duration / point.sessions for point in light)
    heavy = worked[-max(1, len(worked) // 10) :]
    added = median((point.duration - scan * point.sessions) / point.tran_count for point in heavy)
    return max(LEAST_COST, added), scan


def outcome(parameters: CaptureParameters, load: Load) -> Outcome:
    """What these parameters would have done to the load."""
    batch = parameters.maxtrans * parameters.maxscans
    pause = parameters.pollinginterval if parameters.continuous else 0
    ceiling = batch / (pause + parameters.maxscans * load.scan + batch * load.cost)
    backlog = worst = 0.0
    behind = 0
    for count in load.transactions:
        due = backlog + count
        done = min(due, ceiling * load.step)
        backlog = due - done if due - done > 0.5 else 0.0
        behind += load.step if backlog else 0
        work = load.scan + min(due / load.step * max(pause, _LEAST_PAUSE), batch) * load.cost
        if count or backlog:
            worst = max(worst, pause + work + backlog / ceiling)
    drains = 3600 / max(pause, _LEAST_PAUSE)
    return Outcome(parameters, ceiling, worst, behind, drains)


def recommended(running: CaptureParameters, load: Load, goal: timedelta) -> Outcome:
    """The parameters that look at the log least often and still meet the goal.

    Of those with one interval the smallest scans are taken: they need the least memory. Where none meets it,
    the fastest; where the running ones are as good, these.
    """
    candidates = [
        outcome(
            replace(running, continuous=True, maxtrans=trans, maxscans=scans, pollinginterval=pause), load
        )
        for pause in _INTERVALS
        for trans in _TRANS
        for scans in _SCANS
    ]
    good = [each for each in candidates if each.meets(goal, load)]
    best = good[0] if good else min(candidates, key=lambda each: (each.worst, -each.ceiling))
    now = outcome(running, load)
    is_enough = now.meets(goal, load) if good else now.worst <= best.worst
    return now if is_enough and now.drains <= best.drains else best


def alternatives(running: CaptureParameters, load: Load, goal: timedelta) -> Sequence[tuple[str, Outcome]]:
    """What runs, what is recommended, and the default: each once, with a word."""
    rows: dict[CaptureParameters, str] = {}
    best = recommended(running, load, goal)
    for parameters, word in (
        (running, "as it runs"),
        (best.parameters, "recommended"),
        (CaptureParameters(), "default"),
    ):
        rows[parameters] = f"{rows[parameters]}, {word}" if parameters in rows else word
    return [(word, outcome(parameters, load)) for parameters, word in rows.items()]


def sentence(running: CaptureParameters, load: Load, goal: timedelta) -> str:
    """The advice in words, without numbers' units left to guess."""
    if not any(load.transactions):
        return "No transaction was captured in the last week: there is nothing to go by."
    best = recommended(running, load, goal)
    if best.parameters == running:
        if best.meets(goal, load):
            return "Leave it as it is: every change of the last week would have been there in time."
        return (
            "Leave it as it is: no other parameters would have been faster. The work itself takes the time."
        )
    if not best.meets(goal, load):
        return "No parameters reach that goal; these come closest. The work itself takes the time."
    if outcome(running, load).meets(goal, load):
        return "It is fast enough; these look at the log less often and are fast enough too."
    return "These would have had every change of the last week there in time, with room for twice the peak."
