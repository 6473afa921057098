"""How much log the source holds for capture: what was collected, what is held now, and until when it may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from dashboard import glossary, state
from dashboard.charts.chart import TimeRange
from dashboard.charts.log_held import log_held_chart
from dashboard.collecting import collected
from dashboard.components.chart_card import chart_card
from dashboard.components.operation_box import AT_ONCE
from dashboard.history_reading import LOG, taken_rows
from dashboard.log_held import LogSample, collected_samples, log_held_words, most_of_each, sample
from dashboard.operations import Operation, OperationState
from dashboard.sessions import align, align_up
from dashboard.snapshot import DatabaseView
from engine.engine import Engine
from engine.model.collection import DEFAULT_SET, CollectionRun
from engine.monitoring.forecast import LogForecast

RUNS = 2000
"""The newest snapshots that gaps are looked for in."""
_HOUR = 3600
Hours = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class CollectedLog:
    """What snapshots say of one database's log, and the runs that took them."""

    database: str
    hours: Hours | None = None
    samples: Sequence[LogSample] = ()
    runs: Sequence[CollectionRun] = ()


def log_held_card(view: DatabaseView, key: str) -> None:
    """Read once for each new snapshot, in the background; what is held now comes with the picture."""
    viewer, now = state.viewer(), state.now()
    span = viewer.axis(now)
    found, is_missing = _collected(view.name, span, key)
    taken, forecast = _now(view)
    samples = [each for each in found.samples if taken is None or each.at < taken.at]
    shown = most_of_each(samples, viewer.step) + ([] if taken is None else [taken])
    gaps = collected(found.runs, min(now, span.end)).gaps
    chart = log_held_chart(shown, gaps, span)
    words = log_held_words(view.slot, forecast)
    if is_missing:
        words += " What was collected could not be read: page History says why."
    meaning = f"{glossary.LOG_HELD}\n\n{glossary.LOG_LIMIT}"
    chart_card("Log held", chart, key, meaning, state.choose_range, caption=words)


def _now(view: DatabaseView) -> tuple[LogSample | None, LogForecast | None]:
    picture = state.snapshot()
    if picture.status is None:
        return None, None
    forecast = next((each.forecast for each in picture.status.databases if each.name == view.name), None)
    if view.slot is None:
        return None, forecast
    slot = view.slot
    return sample(picture.taken, slot.retained_bytes, slot.safe_wal_size, slot.wal_status), forecast


def _collected(database: str, span: TimeRange, key: str) -> tuple[CollectedLog, bool]:
    """What was read last; True where it could not be. Until the first answer nothing is known."""
    status = state.snapshot().status
    sets = () if status is None else status.collection_sets
    last = next((each.last_run for each in sets if each.is_system), None)
    kept = f"{key}_collected"
    before: CollectedLog | None = st.session_state.get(kept)
    known = before if before is not None and before.database == database else CollectedLog(database)
    if last is None:
        return known, False
    hours = align(span.start, _HOUR), align_up(span.end, _HOUR)
    operation = _operation(database, hours, last)
    if known.hours != hours and not operation.wait(AT_ONCE):
        state.look_soon()
    if isinstance(operation.result, CollectedLog):
        known = st.session_state[kept] = operation.result
    return known, operation.state is OperationState.FAILED


def _operation(database: str, hours: Hours, last: CollectionRun) -> Operation:
    """A read of whole hours: the same until the next snapshot, or hour."""
    key = f"log_held:{database}:{hash(hours)}:{last.snapshot_id}:{last.outcome}"
    engine = state.engine()

    def work(operation: Operation) -> CollectedLog:
        operation.step("reading the log held")
        return read_log_held(engine, database, hours)

    return state.operations().get(key) or state.operations().submit(key, "Log held", work)


def read_log_held(engine: Engine, database: str, hours: Hours) -> CollectedLog:
    """What snapshots of the range tell of a database's log. No Spark job where files can be read."""
    rows = taken_rows(engine.collected_rows(LOG, *hours, database))
    return CollectedLog(database, hours, collected_samples(rows), engine.collection_runs(DEFAULT_SET, RUNS))
