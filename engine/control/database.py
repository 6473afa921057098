"""`ControlDatabase`: everything that is kept outside of the lake, behind one object."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Self

from sqlalchemy import Connection, delete, func, literal, select, text, update

from engine.control.activity import ActivityRepository
from engine.control.alerts import AlertRepository
from engine.control.capture_runs import CaptureRunRepository
from engine.control.clients import ClientRepository
from engine.control.collection_runs import CollectionRunRepository
from engine.control.collection_sets import CollectionSetRepository
from engine.control.compactions import CompactionRepository
from engine.control.connections import Connections, database_id
from engine.control.ddl_history import DdlHistoryRepository
from engine.control.instances import InstanceRepository, drop_instances, drop_mapping
from engine.control.job_runs import JobRunRepository
from engine.control.jobs import JobRepository, remove_jobs
from engine.control.leases import DISABLING, LeaseRepository
from engine.control.low_endpoints import LowEndpointRepository
from engine.control.notifications import AGENT_NAME, JOBS, Listener, listen, notify
from engine.control.publication import Publication, publish
from engine.control.scan_calls import ScanCallRepository
from engine.control.scan_errors import ScanErrorRepository
from engine.control.scan_pauses import ScanPauseRepository
from engine.control.schema import (
    compactions,
    databases,
    leases,
    scan_errors,
    scan_runs,
    scan_sessions,
    watermarks,
)
from engine.control.sessions import SessionRepository
from engine.control.sources import SourceRepository
from engine.control.users import UserRepository
from engine.control.watermarks import WatermarkRepository
from engine.model.job import JobType


class ControlDatabase:
    """The control database. Threads may share one; each call is a transaction of its own.

    Raises ControlUnreachable wherever the server does not answer.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.sources = SourceRepository(connections)
        self.instances = InstanceRepository(connections)
        self.low_endpoints = LowEndpointRepository(connections)
        self.clients = ClientRepository(connections)
        self.compactions = CompactionRepository(connections)
        self.ddl = DdlHistoryRepository(connections)
        self.watermarks = WatermarkRepository(connections)
        self.jobs = JobRepository(connections)
        self.runs = JobRunRepository(connections)
        self.capture_runs = CaptureRunRepository(connections)
        self.sessions = SessionRepository(connections)
        self.pauses = ScanPauseRepository(connections)
        self.errors = ScanErrorRepository(connections)
        self.leases = LeaseRepository(connections)
        self.calls = ScanCallRepository(connections)
        self.alerts = AlertRepository(connections)
        self.collection_sets = CollectionSetRepository(connections)
        self.collection_runs = CollectionRunRepository(connections)
        self.users = UserRepository(connections)
        self.activity = ActivityRepository(connections)

    @classmethod
    def open(cls, dsn: str) -> Self:
        """The control database behind a libpq URI; connects at the first call, not here."""
        return cls(Connections(dsn))

    def migrate(self) -> None:
        """Brings the schema to this version's. Raises HomeTooNew when it is newer already."""
        # Alembic takes a tenth of a second to import, and only the agent migrates.
        from engine.control.migrate import migrate

        migrate(self._connections.engine)

    def close(self) -> None:
        """Gives up pooled connections."""
        self._connections.close()

    def publish(self, publication: Publication) -> None:
        """Makes a scan's changes visible in one transaction. Raises LeaseLost."""
        publish(self._connections, publication)

    def notify(self, channel: str, payload: str) -> None:
        """Sends a notification now."""
        with self._connections.begin() as connection:
            notify(connection, channel, payload)

    def listen(self, *channels: str) -> AbstractContextManager[Listener]:
        """A listener on these channels, for the length of a ``with``."""
        return listen(self._connections, *channels)

    def agent_is_alive(self) -> bool:
        """Whether an agent listens for jobs, by the server's list of connections."""
        query = text(
            "SELECT EXISTS (SELECT FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = :name)"
        )
        with self._connections.read() as connection:
            return bool(connection.scalar(query, {"name": AGENT_NAME}))

    def identity(self) -> str:
        """Which control database this is, among all that there are: its server and its number there."""
        query = text(
            "SELECT format('%s-%s', c.system_identifier, d.oid) FROM pg_control_system() c, pg_database d"
            " WHERE d.datname = current_database()"
        )
        with self._connections.read() as connection:
            return str(connection.scalar(query))

    def agent_seen(self) -> datetime | None:
        """When an agent gave its last sign: it renewed a lease (every third of its length) or published.

        None before the first one. The end of one that was killed is not written down by anybody.
        """
        capturing = (leases.c.job_type == JobType.CAPTURE, leases.c.holder != DISABLING)
        renewed = func.max(leases.c.expires - leases.c.seconds * literal(timedelta(seconds=1)))
        with self._connections.read() as connection:
            signs = [
                connection.scalar(select(renewed).where(*capturing)),
                connection.scalar(select(func.max(watermarks.c.published_at))),
            ]
        return max((sign for sign in signs if sign is not None), default=None)

    def disable_database(self, database: str) -> None:
        """Takes a database back to never enabled; its folders are listed to be cleared away."""
        with self._connections.begin() as connection:
            key = database_id(connection, database, lock=True)
            self._disable(connection, key, database)
            notify(connection, JOBS, database)

    def remove_database(self, database: str) -> None:
        """Forgets a database and everything kept of it; its folders are listed to be cleared away."""
        with self._connections.begin() as connection:
            key = database_id(connection, database, lock=True)
            self._disable(connection, key, database)
            connection.execute(delete(databases).where(databases.c.database_id == key))
            notify(connection, JOBS, database)

    def _disable(self, connection: Connection, key: int, database: str) -> None:
        # First of all: a capture process that still believes in its lease must publish nothing more.
        connection.execute(
            update(leases)
            .where(leases.c.database_id == key)
            .values(token=leases.c.token + 1, expires=func.clock_timestamp())
        )
        remove_jobs(connection, key)
        for table in (watermarks, scan_sessions, scan_runs, scan_errors, compactions):
            connection.execute(delete(table).where(table.c.database_id == key))
        connection.execute(
            update(databases).where(databases.c.database_id == key).values(is_cdc_enabled=False)
        )
        drop_instances(connection, key, self._object_ids(database))
        drop_mapping(connection, database)

    def _object_ids(self, database: str) -> tuple[int, ...]:
        return tuple(instance.object_id for instance in self.instances.list(database))
