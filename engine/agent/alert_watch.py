"""Looks at the state of all databases now and then and tells the alert hook of what is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from threading import Event, Thread

import structlog

from engine.control.database import ControlDatabase
from engine.errors import CdcError, UnknownDatabase
from engine.model.alert import AlertKind
from engine.monitoring.agent_presence import STEADY_SECONDS
from engine.monitoring.alert_telling import AlertTeller
from engine.monitoring.alerts import judge
from engine.monitoring.collection_findings import collection_findings
from engine.monitoring.status import EngineStatus, StatusReader

_log = structlog.get_logger(__name__)

LOOK_EVERY = 5.0


class AlertWatch:
    """A thread of its own: a hook that hangs holds up no job. Nothing is asked while no hook is set."""

    def __init__(
        self,
        control: ControlDatabase,
        status: StatusReader,
        clock: Callable[[], datetime],
        look_every: float = LOOK_EVERY,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """``seconds``: of a clock that never goes back."""
        self._control = control
        self._status = status
        self._clock = clock
        self._look_every = look_every
        self._seconds = seconds
        self._begun = seconds()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="alerts", daemon=True)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop(self) -> None:
        """Ends after what is being told."""
        self._stop.set()
        self._thread.join()

    def look(self) -> None:
        """Once: raises and clears alerts, then tells what nobody has told. Raises ControlUnreachable."""
        hook = self._control.alerts.hook()
        if not hook.is_set:
            return
        status = self._status.read()
        for database in status.databases:
            judgement = judge(database.facts, self._clock(), hook)
            try:
                self._control.alerts.note(database.name, judgement.standing, judgement.unknown, self._clock())
            except UnknownDatabase:
                _log.info("database went while it was looked at", database=database.name)
        self._note_home(status)
        AlertTeller(self._control, self._stop).tell(hook)

    def _note_home(self, status: EngineStatus) -> None:
        found = collection_findings(status.collection_sets, agent_is_alive=True, now=status.taken)
        words = " ".join(finding.text for finding in found)
        standing = {AlertKind.COLLECTION: words} if words else {}
        # An agent that dies soon after its start, again and again, is none.
        is_steady = self._seconds() - self._begun >= STEADY_SECONDS
        unknown = frozenset() if is_steady else frozenset({AlertKind.AGENT})
        self._control.alerts.note(None, standing, unknown, status.taken)

    def _run(self) -> None:
        while not self._stop.wait(self._look_every):
            try:
                self.look()
            except CdcError as error:
                _log.warning("alerts not looked at", error=error.line())
            except Exception:  # noqa: BLE001 - the supervisor's edge: the next look may go well
                _log.exception("alerts not looked at")
