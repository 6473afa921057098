"""The agent's Spark session as a client of the home sees it."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from engine.errors import AgentNotRunning
from engine.runtime.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT_PORT = "connect_port"


class SparkClient:
    """Connects when the first query asks for it, and anew when another agent has taken the place."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = Lock()
        self._session: SparkSession | None = None
        self._agent: tuple[int, int] | None = None

    def __call__(self) -> SparkSession:
        """The session; threads share it. Raises AgentNotRunning."""
        # pyspark takes half a second to import: a program that asks no query does without.
        from engine.lake.spark import ConnectEndpoint, connect_session

        record = self._home.processes().get("agent")
        port = None if record is None else record.facts.get(CONNECT_PORT)
        if record is None or port is None:
            raise AgentNotRunning("queries need it")
        with self._lock:
            if self._session is None or self._agent != (record.pid, port):
                self._session = connect_session(ConnectEndpoint(port, self._home.connect_token))
                self._agent = (record.pid, port)
            return self._session

    def close(self) -> None:
        """Ends the session on the agent, if there is one and the agent still lives."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None and "agent" in self._home.processes():
            session.stop()
