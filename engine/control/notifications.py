"""PostgreSQL's LISTEN and NOTIFY: how the agent and those who wait for it learn of news without polling."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql
from sqlalchemy import Connection, func, select

from engine.control.connections import Connections, words_of
from engine.errors import ControlUnreachable

JOBS = "highwater_jobs"
"""A job's row changed, or there is something to clear away; payload: the database."""
WAKE = "highwater_wake"
"""Scan this database now; payload: the database."""
PUBLISHED = "highwater_published"
"""A publication was committed; payload: the database."""
REPORTED = "highwater_reported"
"""The agent said something new of a job; payload: the database."""

COLLECTOR = "data collector"
"""Payload of JOBS and REPORTED where a collection set is meant, in the place of a database's name."""

AGENT_NAME = "highwater agent"
"""application_name of a connection that listens for jobs: its presence is the agent's sign of life."""


@dataclass(frozen=True, slots=True)
class Notification:
    """News on a channel; the payload is the database's name."""

    channel: str
    payload: str


class Listener:
    """A connection that listens. For one thread; only ``stop`` of another may interrupt a wait."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._waiting: deque[Notification] = deque()

    def wait(self, timeout: float | None = None) -> Notification | None:
        """The next notification, at once or within ``timeout`` seconds; None when there was none.

        Raises ControlUnreachable when the connection is lost: news may have been missed then.
        """
        if self._waiting:
            return self._waiting.popleft()
        try:
            for news in self._connection.notifies(timeout=timeout, stop_after=1):
                self._waiting.append(Notification(news.channel, news.payload))
        except psycopg.OperationalError as error:
            raise ControlUnreachable(words_of(error)) from error
        return self._waiting.popleft() if self._waiting else None

    def until(self, deadline: float) -> Iterator[Notification]:
        """Notifications as they come until ``time.monotonic()`` passes ``deadline``."""
        while (left := deadline - time.monotonic()) > 0:
            news = self.wait(left)
            if news is not None:
                yield news


@contextmanager
def listen(connections: Connections, *channels: str) -> Iterator[Listener]:
    """A listener on these channels: whatever is notified from now on is not missed."""
    with connections.connect(autocommit=True) as connection:
        try:
            if JOBS in channels:
                # A host that goes down takes its sign of life along: the server asks after it.
                connection.execute("SET tcp_keepalives_idle = 15")
                connection.execute(sql.SQL("SET application_name = {}").format(AGENT_NAME))
            for channel in channels:
                connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        except psycopg.OperationalError as error:
            raise ControlUnreachable(words_of(error)) from error
        yield Listener(connection)


def notify(connection: Connection, channel: str, payload: str) -> None:
    """Sends a notification when the caller's transaction commits."""
    connection.execute(select(func.pg_notify(channel, payload)))
