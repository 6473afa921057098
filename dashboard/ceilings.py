"""The ceiling of capture over time: that of the parameters each run of the job ran with. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dashboard.sessions import Bucket
from engine.model.job import CaptureParameters, Job, JobRun, RunOutcome
from engine.model.scan_session import ScanSession

_NAMES = ("maxtrans", "maxscans", "continuous", "pollinginterval")


@dataclass(frozen=True, slots=True)
class CeilingStep:
    """What a run could take at most, tran/s, from its start to its end (None: it goes on).

    ceiling: None where its parameters set none.
    """

    start: datetime
    end: datetime | None
    ceiling: float | None

    def covers(self, moment: datetime) -> bool:
        """Whether the run ran then."""
        return self.start <= moment and (self.end is None or moment < self.end)


def ceiling_steps(
    runs: Sequence[JobRun], job: Job | None, history: Sequence[ScanSession]
) -> list[CeilingStep]:
    """Steps in order of time. runs: of the capture job; history: sessions in order of time.

    Of a run that was cut off, with its agent too, nobody wrote the end: it is that of its last session.
    """
    is_on = job is not None and job.running is not None
    ordered = sorted(runs, key=lambda run: run.start_time)
    steps: list[CeilingStep] = []
    for number, run in enumerate(ordered):
        parameters = _parameters(run.parameters)
        if parameters is None:
            continue
        following = ordered[number + 1].start_time if number + 1 < len(ordered) else None
        end = run.end_time
        if end is None and not (is_on and following is None and run.outcome is RunOutcome.RUNNING):
            end = _last_end(history, run.start_time, following)
        steps.append(CeilingStep(run.start_time, end, parameters.ceiling))
    is_told = any(step.end is None for step in steps)
    if job is not None and job.running is not None and job.running_step is None and not is_told:
        steps.append(CeilingStep(job.since, None, job.running.ceiling))  # not in the history yet
    return steps


def _parameters(given: Mapping[str, int | bool | str]) -> CaptureParameters | None:
    """None of a step of one's own, which scans by its own plan."""
    if "step" in given or any(name not in given for name in _NAMES):
        return None
    maxtrans, maxscans, continuous, interval = (int(given[name]) for name in _NAMES)
    return CaptureParameters(maxtrans, maxscans, bool(continuous), interval)


def _last_end(history: Sequence[ScanSession], start: datetime, until: datetime | None) -> datetime:
    ends = (
        session.end_time
        for session in reversed(history)
        if session.end_time is not None and (until is None or session.end_time <= until)
    )
    return max(start, next(ends, start))


def ceiling_at(steps: Sequence[CeilingStep], moment: datetime) -> float | None:
    """The ceiling of what ran then; None where nothing did, or without a ceiling."""
    return next((step.ceiling for step in reversed(steps) if step.covers(moment)), None)


def utilisation(buckets: Sequence[Bucket], steps: Sequence[CeilingStep]) -> list[float | None]:
    """The share of the ceiling that each bucket used; None where one of both is not known."""
    half = (buckets[1].start - buckets[0].start) / 2 if len(buckets) > 1 else timedelta(0)
    found: list[float | None] = []
    for bucket in buckets:
        ceiling = ceiling_at(steps, bucket.start + half)
        known = bucket.transactions is not None and bool(ceiling)
        found.append((bucket.transactions or 0) / (ceiling or 1) if known else None)
    return found
