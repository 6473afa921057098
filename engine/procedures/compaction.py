"""Compaction from outside: the agent does it, for only it may commit to tables that it captures into."""

from __future__ import annotations

import time

from engine.control import JOBS, REPORTED, ControlDatabase
from engine.errors import AgentNotRunning, CompactionFailed, SyncTimeout
from engine.model.compaction import CompactionRun
from engine.model.job import RunOutcome
from engine.procedures.databases import Databases

_LOOK_AGAIN = 1.0
"""Seconds after which a wait looks at the row without news."""


class Compactions:
    """Asks for compactions and waits for them."""

    def __init__(self, control: ControlDatabase, databases: Databases) -> None:
        self._control = control
        self._databases = databases

    def last(self, database: str) -> CompactionRun | None:
        """The last one, or the one that runs; None where there was none."""
        return self._control.compactions.get(self._databases.get(database).name)

    def run(self, database: str, timeout: float) -> CompactionRun:
        """Asks for one and returns when it is done.

        Raises AgentNotRunning, but then it is done when there is an agent; SyncTimeout, CompactionFailed.
        """
        name = self._databases.enabled(database).name
        deadline = time.monotonic() + timeout
        with self._control.listen(REPORTED) as listener:
            self._control.compactions.ask(name)
            if not self._control.agent_is_alive():
                raise AgentNotRunning(f"{name} is compacted when it is")
            while (left := deadline - time.monotonic()) > 0:
                now = self._control.compactions.get(name)
                if now is None:
                    break  # disabled meanwhile
                if not now.wanted and now.outcome is not RunOutcome.RUNNING:
                    return _done(now)
                if listener.wait(min(left, _LOOK_AGAIN)) is None:
                    self._control.notify(JOBS, name)
        raise SyncTimeout(f"Compacting {name}", timeout, "it goes on in the agent")


def _done(run: CompactionRun) -> CompactionRun:
    if run.outcome is RunOutcome.FAILED:
        raise CompactionFailed(run.database, run.message)
    return run
