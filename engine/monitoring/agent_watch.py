"""Tells the alert hook when no agent runs: what watches the agent can't be the agent."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event, Thread

from engine.control.database import ControlDatabase
from engine.model.alert import AlertKind
from engine.monitoring.agent_presence import AgentPresence
from engine.monitoring.alert_telling import AlertTeller

LOOK_EVERY = 5.0
NOT_RUNNING = "The agent is not running, though it is started again and again: {0}."
_OTHERS = frozenset(AlertKind) - {AlertKind.AGENT}


class AgentWatch:
    """A thread of the supervisor; ``say`` gets a line where it can't look.

    Any agent on the control database will do: one on another machine serves the jobs as well.
    """

    def __init__(
        self,
        open_control: Callable[[], ControlDatabase],
        say: Callable[[str], None],
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open = open_control
        self._say = say
        self._seconds = seconds
        self._stop = Event()
        self._presence = AgentPresence()
        self._thread = Thread(target=self._run, name="agent watch", daemon=True)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop(self) -> None:
        """Ends after what is being told."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def look(self, control: ControlDatabase) -> None:
        """Once: raises or clears the alert, and tells what nobody has told. Raises ControlUnreachable."""
        is_away = self._presence.look(control.agent_is_alive(), self._seconds())
        hook = control.alerts.hook()
        if not hook.is_set or is_away is None:
            return
        standing = {AlertKind.AGENT: NOT_RUNNING.format(_waiting(control))} if is_away else {}
        control.alerts.note(None, standing, _OTHERS, datetime.now(UTC))
        AlertTeller(control, self._stop).tell(hook)

    def _run(self) -> None:
        control = self._open()
        was_said = False
        try:
            while not self._stop.wait(LOOK_EVERY):
                try:
                    self.look(control)
                    was_said = False
                except Exception as error:  # noqa: BLE001 - the edge: the next look may go well
                    if not was_said:
                        self._say(f"Nobody can be told whether the agent runs: {error}")
                    was_said = True
        finally:
            control.close()


def _waiting(control: ControlDatabase) -> str:
    """What does not run without it."""
    databases = [each.name for each in control.sources.list() if each.is_cdc_enabled]
    wanted = [job.name for name in databases for job in control.jobs.list(name) if job.wanted]
    return f"{', '.join(wanted)} cannot run, and sources keep their log" if wanted else "nothing runs jobs"
