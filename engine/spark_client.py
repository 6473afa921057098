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

        agent = self._living_agent()
        if agent is None:
            raise AgentNotRunning("queries need it")
        with self._lock:
            if self._session is None or self._agent != agent:
                self._session = connect_session(ConnectEndpoint(agent[1], self._home.connect_token))
                self._agent = agent
            return self._session

    def close(self) -> None:
        """Ends the session on its agent; nothing where that agent is gone, and the session with it."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None and self._agent == self._living_agent():
            session.stop()

    def _living_agent(self) -> tuple[int, int] | None:
        """Process and port of the agent that serves this home; None while it starts or is away."""
        record = self._home.processes().get("agent")
        port = None if record is None else record.facts.get(CONNECT_PORT)
        return None if record is None or port is None else (record.pid, int(port))
