"""Collection sets: what is collected, how often, and how long it is kept (reference/monitoring.md)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum
from uuid import UUID

from engine.model.job import RunOutcome

TSQL_COLLECTOR = UUID("302E93D1-3424-4BE7-AA8E-84813ECF2419")
"""collector_type_uid of the Generic T-SQL Query collector type, the only one there is here."""
DEFAULT_SET = "Change Data Capture"
"""The collection set that each home has."""


class CollectionMode(IntEnum):
    """``collection_mode``: here both collect and store by the set's one schedule."""

    CACHED = 0
    NON_CACHED = 1


@dataclass(frozen=True, slots=True)
class CollectorSchedule:
    """A row of msdb.dbo.sysschedules_localserver_view; ``cron`` is what it means."""

    schedule_uid: UUID
    name: str
    cron: str


@dataclass(frozen=True, slots=True)
class CollectionItem:
    """A row of msdb.dbo.syscollector_collection_items. ``frequency`` is kept as given, in seconds."""

    collection_item_id: int
    collection_set_id: int
    collection_item_uid: UUID
    collector_type_uid: UUID
    name: str
    frequency: int
    parameters: str


@dataclass(frozen=True, slots=True)
class CollectionRun:
    """One collection. ``snapshot_id`` is in each row that it appended; times are UTC.

    end_time: None while it runs, and where it was interrupted. interval_seconds: how often the set was to
    collect then, None without a schedule. agent_start: when the agent began that collected.
    """

    snapshot_id: int
    collection_set_id: int
    snapshot_time: datetime
    end_time: datetime | None
    outcome: RunOutcome
    message: str
    rows: int
    interval_seconds: int | None
    agent_start: datetime


@dataclass(frozen=True, slots=True)
class CollectionSet:
    """A row of msdb.dbo.syscollector_collection_sets, with its items and its newest run.

    schedule: cron text, None where it collects only on demand. days_until_expiration: 0 keeps data for
    ever. next_run: UTC, None until the agent has seen the schedule. wanted: somebody asked for a collection
    now. is_system: the default one.
    """

    collection_set_id: int
    collection_set_uid: UUID
    name: str
    description: str | None
    is_system: bool
    is_running: bool
    collection_mode: CollectionMode
    schedule: str | None
    days_until_expiration: int
    logging_level: int
    wanted: bool
    next_run: datetime | None
    items: tuple[CollectionItem, ...] = ()
    last_run: CollectionRun | None = None


@dataclass(frozen=True, slots=True)
class CollectedTable:
    """A table of custom_snapshots, and how large it is now; nothing was written into it where files is 0."""

    output_table: str
    rows: int
    files: int
    size_bytes: int


class BreakKind(StrEnum):
    """What breaks a line drawn over snapshots."""

    GAP = "gap"
    """Snapshots are missing: nothing is known of that time but what sessions tell later."""
    AGENT_RESTART = "agent restart"
    """Another agent collected from here on."""
    ENGINE_RESTART = "engine restart"
    """A database's scan sessions count from 1 again: another run of the agent captures it."""


@dataclass(frozen=True, slots=True)
class HistoryBreak:
    """A place where the history does not go on as before; ``start`` is the last snapshot before it, UTC.

    end: the first snapshot after it, None where there is none yet. database: None where all are meant.
    began: when the agent, or the run of capture, began that goes on from there; None of a gap.
    """

    kind: BreakKind
    start: datetime
    end: datetime | None
    database: str | None = None
    reason: str = ""
    began: datetime | None = None


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """What a database's scan sessions of one stretch of time were, UTC; sessions belong where they began.

    latency: seconds, the largest and the mean of sessions with transactions, None without any. duration:
    seconds of those. empty_scan_count: the longest run of empty scans. command_rate: commands a second,
    ``command_count / duration``; None for sessions shorter than a second, never infinite.
    """

    database: str
    start: datetime
    sessions: int
    latency_max: int | None
    latency_mean: float | None
    tran_count: int
    command_count: int
    log_record_count: int
    duration: int
    empty_scan_count: int
    error_count: int

    @property
    def command_rate(self) -> float | None:
        """Commands a second of scanning."""
        return self.command_count / self.duration if self.duration else None
