"""What a home tells Prometheus: docs/monitoring.md lists the metrics. Pure: a reading becomes families.

Names follow Debezium's metrics (``milliseconds_behind_source``, ``number_of_committed_transactions`` …) where
they mean the same, and postgres_exporter's ``pg_replication_slot_…``, in Prometheus' base units.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from engine.model.client import Client
from engine.model.collection import CollectionSet
from engine.model.job import JobState, RunOutcome, is_cleanup
from engine.model.scan_session import ScanSession
from engine.monitoring.capture_state import CaptureState
from engine.monitoring.diagnosis import DatabaseFacts, Verdict
from engine.monitoring.status import DatabaseStatus, EngineStatus
from engine.sources.base import SlotState

PREFIX = "highwater"
WAL_STATES = ("reserved", "extended", "unreserved", "lost")

Number = float | int | None


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read last. ``totals``: session 0 of each database; ``status`` None before the first reading.

    is_current: whether the control database answered just now.
    """

    version: str
    is_current: bool
    status: EngineStatus | None = None
    totals: Mapping[str, ScanSession] | None = None


class Families:
    """Families by name, in the order in which they were first asked for."""

    def __init__(self) -> None:
        self._found: dict[str, Metric] = {}

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._found.values())

    def gauge(self, name: str, text: str, value: Number, **labels: str) -> None:
        """A value that goes up and down; none where it is unknown."""
        self._add(GaugeMetricFamily, name, text, value, labels)

    def counter(self, name: str, text: str, value: Number, **labels: str) -> None:
        """A value that only grows until the agent starts anew; ``name`` without its ``_total``."""
        self._add(CounterMetricFamily, name, text, value, labels)

    def time(self, name: str, text: str, value: datetime | None, **labels: str) -> None:
        """A moment, as seconds since 1970."""
        self.gauge(f"{name}_timestamp_seconds", text, None if value is None else value.timestamp(), **labels)

    def states(self, name: str, text: str, state: str, of: Sequence[str], **labels: str) -> None:
        """1 for the state that it is in, 0 for all others."""
        for each in of:
            self.gauge(name, text, float(each == state), **labels, state=each)

    def _add(
        self,
        kind: type[GaugeMetricFamily] | type[CounterMetricFamily],
        name: str,
        text: str,
        value: Number,
        labels: Mapping[str, str],
    ) -> None:
        family = self._found.get(name)
        if family is None:
            self._found[name] = family = kind(f"{PREFIX}_{name}", text, labels=tuple(labels))
        assert isinstance(family, kind)
        if value is not None:
            family.add_metric(tuple(labels.values()), float(value))


def families(reading: Reading) -> Iterator[Metric]:
    """Everything that is exposed."""
    found = Families()
    found.gauge("build_info", "1, labelled with the version.", 1, version=reading.version)
    found.gauge("control_up", "Whether the control database answers.", float(reading.is_current))
    status = reading.status
    if status is not None:
        found.time("reading", "When what is exposed here was read.", status.taken)
        for verdict in Verdict:
            if verdict is not Verdict.HEALTHY:
                count = sum(finding.verdict is verdict for finding in status.findings)
                found.gauge("findings", "Findings of the status.", count, verdict=str(verdict))
        for database in status.databases:
            _database(found, database, status.taken, (reading.totals or {}).get(database.name))
        for each in status.collection_sets:
            _collection_set(found, each)
    yield from found


def _database(found: Families, status: DatabaseStatus, now: datetime, total: ScanSession | None) -> None:
    name, facts = status.name, status.facts
    enabled = float(facts.database.is_cdc_enabled)
    found.gauge("database_cdc_enabled", "Whether change data capture is enabled.", enabled, database=name)
    if not enabled:
        return
    _capture(found, status, now)
    _scans(found, name, total, facts.latest)
    _jobs(found, status)
    if facts.slot is not None:
        _slot(found, name, facts.slot)
    if status.forecast is not None:
        _forecast(found, status)
    for client in facts.clients:
        _client(found, facts, client, now)
    for instance in facts.instances:
        found.gauge(
            "capture_instance_info",
            "1 for each capture instance.",
            1,
            database=name,
            capture_instance=instance.capture_instance,
            source_schema=instance.source_schema,
            source_table=instance.source_table,
        )


def _capture(found: Families, status: DatabaseStatus, now: datetime) -> None:
    name, facts, marks = status.name, status.facts, status.facts.watermarks
    capture = status.capture
    if capture is not None:
        found.states(
            "capture_state",
            "What capture does: 1 for the state that it is in.",
            str(capture.state),
            [str(each) for each in CaptureState],
            database=name,
        )
        found.time("capture_state_since", "Since when it is in that state.", capture.since, database=name)
    found.gauge(
        "capture_connected", "Whether the source answers.", float(facts.unreachable is None), database=name
    )
    found.gauge(
        "capture_lag_bytes",
        "Log between what is published and the log's end.",
        status.lag_bytes,
        database=name,
    )
    found.gauge(
        "capture_seconds_since_published",
        "How long ago the log was read to where it ended then.",
        status.lag_seconds(now),
        database=name,
    )
    found.gauge(
        "capture_source_position_bytes",
        "Position in the log up to which everything is published.",
        None if marks.scanned is None else marks.scanned.position,
        database=name,
    )
    found.time(
        "capture_last_transaction_commit",
        "Commit of the newest transaction that is published, or of the tick that stands for silence.",
        marks.last_commit_time,
        database=name,
    )


_TOTALS: Sequence[tuple[str, str, str]] = (
    ("capture_number_of_committed_transactions", "tran_count", "Transactions captured."),
    ("capture_number_of_events_seen", "log_record_count", "Log records read."),
    ("capture_number_of_commands", "command_count", "Inserts, updates and deletes captured."),
    ("capture_number_of_schema_changes", "schema_change_count", "DDL operations met."),
    ("capture_number_of_erroneous_scans", "failed_sessions_count", "Scan sessions that failed."),
    ("capture_number_of_empty_scans", "empty_scan_count", "Scans without CDC transactions."),
    ("capture_scan_seconds", "duration", "Time that scans with CDC transactions took."),
)
"""Metric, column of session 0, meaning."""


def _scans(found: Families, name: str, total: ScanSession | None, latest: ScanSession | None) -> None:
    for metric, column, text in _TOTALS:
        value = 0 if total is None else getattr(total, column)
        found.counter(metric, f"{text} Since the agent's start.", value, database=name)
    latency = None if total is None else total.latency
    text = "From commit at the source to its publication, of the newest transactions captured."
    found.gauge("capture_seconds_behind_source", text, latency, database=name)
    active = latest is not None and latest.end_time is None
    found.gauge("capture_scan_active", "Whether a scan session runs.", float(active), database=name)


def _jobs(found: Families, status: DatabaseStatus) -> None:
    for job in status.jobs:
        labels = {"database": status.name, "job_type": str(job.job_type)}
        found.gauge("job_wanted", "Whether somebody wants it to run.", float(job.wanted), **labels)
        states = [str(each) for each in JobState]
        found.states("job_state", "1 for the state that the job is in.", str(job.state), states, **labels)
        if is_cleanup(job):
            run = job.last_run
            found.time("cleanup_next_run", "When cleanup runs next.", job.next_run, database=status.name)
            if run is None:
                continue
            found.time("cleanup_last_run", "When cleanup last began.", run.start_time, database=status.name)
            found.gauge(
                "cleanup_last_run_failed",
                "Whether that run failed.",
                float(run.outcome is RunOutcome.FAILED),
                database=status.name,
            )
            found.gauge(
                "cleanup_last_run_deleted_rows",
                "Rows that it deleted.",
                run.deleted_rows,
                database=status.name,
            )


def _client(found: Families, facts: DatabaseFacts, client: Client, now: datetime) -> None:
    labels = {
        "database": client.database,
        "capture_instance": client.capture_instance,
        "client": client.name,
    }
    known = facts.client_forecasts.get((client.capture_instance, client.name))
    passed = None if known is None else known.passed_at
    text = "Until cleanup comes to the client, at its pace; below 0 it waits for it when it runs next."
    left = None if passed is None else (passed - now).total_seconds()
    found.gauge("client_forecast_seconds", text, left, **labels)
    text = "Whether cleanup was kept back by the client when it ran last."
    found.gauge("client_holds_cleanup", text, float(client.holds_cleanup), **labels)


def _collection_set(found: Families, collection_set: CollectionSet) -> None:
    labels, run = {"collection_set": collection_set.name}, collection_set.last_run
    running = float(collection_set.is_running)
    found.gauge("collection_set_running", "Whether the set collects by its schedule.", running, **labels)
    at = None if run is None else run.snapshot_time
    found.time("collection_last_run", "When the newest snapshot was begun.", at, **labels)
    failed = None if run is None else float(run.outcome is RunOutcome.FAILED)
    found.gauge("collection_last_run_failed", "Whether that snapshot failed.", failed, **labels)
    due = collection_set.next_run
    found.time("collection_next_run", "When the next snapshot is due.", due, **labels)


def _slot(found: Families, name: str, slot: SlotState) -> None:
    labels = {"database": name, "slot_name": slot.slot}
    values: Sequence[tuple[str, str, Number]] = (
        ("retained_bytes", "Log that the source keeps for the slot.", slot.retained_bytes),
        ("safe_wal_size_bytes", "Log that may be written before any is lost.", slot.safe_wal_size),
        ("limit_bytes", "max_slot_wal_keep_size, where it is set.", slot.limit_bytes),
        ("disk_free_bytes", "Free on the server's disk, where it is this machine's.", slot.disk_free_bytes),
        ("confirmed_flush_lsn", "Position up to which the log may go.", slot.confirmed.position),
        ("restart_lsn", "Position from which the log is kept.", slot.restart.position),
        ("slot_is_active", "Whether it is read just now.", float(slot.active_pid is not None)),
    )
    for metric, text, value in values:
        found.gauge(f"replication_slot_{metric}", text, value, **labels)
    text = "1 for the slot's wal_status."
    for each in WAL_STATES:
        value = float(each == slot.wal_status)
        found.gauge("replication_slot_wal_status", text, value, **labels, wal_status=each)


def _forecast(found: Families, status: DatabaseStatus) -> None:
    forecast = status.forecast
    assert forecast is not None
    labels = {"database": status.name}
    found.gauge("log_growth_bytes_per_second", "How fast the source's log grows.", forecast.pace, **labels)
    left: Sequence[tuple[str, timedelta | None]] = (
        ("slot_limit", forecast.slot_limit),
        ("disk_full", forecast.disk),
    )
    for limit, length in left:
        seconds = None if length is None else length.total_seconds()
        text = "Until the kept log meets a limit, were capture to let nothing go from now on."
        found.gauge("log_forecast_seconds", text, seconds, **labels, limit=limit)
    text = "Whether capture lets nothing go now, and the forecast comes true."
    found.gauge("log_forecast_is_growing", text, float(forecast.is_growing), **labels)
