"""Reads what a snapshot holds: from the control database, the sources and the lake's logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import asdict
from typing import Any

from engine.collector.views import ERRORS, JOBS, SESSIONS, SLOTS, TABLE_SIZES, CollectedView
from engine.control import ControlDatabase
from engine.control.collection_runs import Position
from engine.errors import CdcError
from engine.lake.table_sizes import TableSizes
from engine.lake.tables import Lake
from engine.model.job import AnyJob
from engine.model.source_database import SourceDatabase
from engine.sources.registry import Sources

MOST_SESSIONS = 20_000
"""Sessions of a database that one snapshot takes; the next goes on where it ended."""
SOURCE_SECONDS = 10.0
"""How long sources may take to answer, all together."""

Rows = list[dict[str, Any]]


class ViewReader:
    """Rows of views, of one database or of several at once; columns as `engine.collector.views` has them."""

    def __init__(self, control: ControlDatabase, sources: Sources, lake: Lake, sizes: TableSizes) -> None:
        self._control = control
        self._sources = sources
        self._lake = lake
        self._sizes = sizes
        self._readers: Mapping[str, Callable[[str, Position | None], tuple[Rows, Position | None]]] = {
            SESSIONS.name: self._sessions,
            ERRORS.name: self._errors,
            JOBS.name: self._jobs,
            TABLE_SIZES.name: self._table_sizes,
        }

    def read(
        self, view: CollectedView, databases: Sequence[SourceDatabase], positions: Mapping[str, Position]
    ) -> tuple[Rows, dict[str, Position]]:
        """Rows of all databases, and how far each has come; positions: how far they had come before.

        Raises ControlUnreachable, LakeFailed. A source that does not answer is a row that says so.
        """
        if view is SLOTS:
            return self._slots(databases), {}
        rows: Rows = []
        reached: dict[str, Position] = {}
        for database in databases:
            found, position = self._readers[view.name](database.name, positions.get(database.name))
            rows += [{"database_name": database.name, **row} for row in found]
            if position is not None:
                reached[database.name] = position
        return rows, reached

    def _sessions(self, database: str, position: Position | None) -> tuple[Rows, Position | None]:
        """Session 0, and sessions since the last one of the snapshot before, that one included."""
        start, number = (None, 0) if position is None else (position.engine_start, position.last_id)
        found = self._control.sessions.collected(database, start, number, MOST_SESSIONS)
        rows = [{**asdict(session), "engine_start": run} for run, session in found]
        if len(found) < 2:
            return rows, None
        last_run, last = found[-1]
        return rows, Position(last_run, last.session_id)

    def _errors(self, database: str, position: Position | None) -> tuple[Rows, Position | None]:
        """Errors since the snapshot before."""
        found = self._control.errors.collected(database, 0 if position is None else position.last_id)
        rows = [{**asdict(error), "engine_start": run} for _, run, error in found]
        return rows, Position(None, found[-1][0]) if found else None

    def _jobs(self, database: str, position: Position | None) -> tuple[Rows, Position | None]:
        return [_job(job) for job in self._control.jobs.list(database)], None

    def _table_sizes(self, database: str, position: Position | None) -> tuple[Rows, Position | None]:
        places: list[tuple[str, str | None, str | None, str]] = [
            ("lsn_time_mapping", None, None, self._lake.lsn_time_mapping(database))
        ]
        places += [
            (
                f"{instance.capture_instance}_CT",
                instance.capture_instance,
                None if instance.start_lsn is None else str(instance.start_lsn),
                self._lake.change_table(database, instance.capture_instance),
            )
            for instance in self._control.instances.list(database)
        ]
        rows: Rows = []
        for name, instance, low, path in places:
            size = self._sizes.of(path)
            if size is not None:
                facts = {"row_count": size.rows, "file_count": size.files, "size_bytes": size.bytes}
                rows.append({"table_name": name, "capture_instance": instance, "start_lsn": low, **facts})
        return rows, None

    def _slots(self, databases: Sequence[SourceDatabase]) -> Rows:
        """A row for each database, side by side: one that hangs must not hold up the others."""
        if not databases:
            return []
        pool = ThreadPoolExecutor(max_workers=min(len(databases), 8), thread_name_prefix="collector")
        try:
            looks = {each.name: pool.submit(self._slot, each) for each in databases}
            rows = []
            for name, look in looks.items():
                try:
                    row = look.result(SOURCE_SECONDS)
                except NotInTime:
                    row = {"message": f"It does not answer within {SOURCE_SECONDS:g} s."}
                rows.append({"database_name": name, **row})
            return rows
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _slot(self, database: SourceDatabase) -> dict[str, Any]:
        log = self._sources.log(database)
        try:
            slot = log.slot_state()
        except CdcError as error:
            return {"message": str(error)}
        finally:
            log.close()
        return {
            "slot": slot.slot,
            "confirmed_lsn": str(slot.confirmed),
            "restart_lsn": str(slot.restart),
            "retained_bytes": slot.retained_bytes,
            "wal_status": slot.wal_status,
            "safe_wal_size": slot.safe_wal_size,
        }


def _job(job: AnyJob) -> dict[str, Any]:
    return {
        "job_type": str(job.job_type),
        "state": str(job.state),
        "since": job.since,
        "wanted": job.wanted,
        "message": job.message,
        **asdict(job.configured if job.running is None else job.running),
    }
