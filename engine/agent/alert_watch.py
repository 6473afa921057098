"""Looks at the state of all databases now and then and tells the alert hook of what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from threading import Event, Thread

import structlog
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from engine.control.database import ControlDatabase
from engine.errors import AlertNotDelivered, CdcError, UnknownDatabase
from engine.model.alert import Alert, AlertHook
from engine.monitoring.alert_delivery import deliver
from engine.monitoring.alerts import judge
from engine.monitoring.status import StatusReader

_log = structlog.get_logger(__name__)

LOOK_EVERY = 5.0
ATTEMPTS = 3
"""How often an alert is tried to be told before the failure is written down instead."""


class AlertWatch:
    """A thread of its own: a hook that hangs holds up no job. Nothing is asked while no hook is set."""

    def __init__(
        self,
        control: ControlDatabase,
        status: StatusReader,
        clock: Callable[[], datetime],
        look_every: float = LOOK_EVERY,
    ) -> None:
        self._control = control
        self._status = status
        self._clock = clock
        self._look_every = look_every
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
        for database in self._status.read().databases:
            judgement = judge(database.facts, self._clock(), hook)
            try:
                self._control.alerts.note(database.name, judgement.standing, judgement.unknown, self._clock())
            except UnknownDatabase:
                _log.info("database went while it was looked at", database=database.name)
        while not self._stop.is_set() and (alert := self._control.alerts.claim()) is not None:
            self._tell(hook, alert)

    def _run(self) -> None:
        while not self._stop.wait(self._look_every):
            try:
                self.look()
            except CdcError as error:
                _log.warning("alerts not looked at", error=error.line())
            except Exception:  # noqa: BLE001 - the supervisor's edge: the next look may go well
                _log.exception("alerts not looked at")

    def _tell(self, hook: AlertHook, alert: Alert) -> None:
        """An alert that was cleared before it was told is told as raised, then as cleared."""
        event = "raised" if alert.raised_told is None else "cleared"
        try:
            how = self._retrying()(deliver, hook, alert.as_dict(event))
        except AlertNotDelivered as error:
            how = f"failed: {error}"
            _log.error("alert not delivered", database=alert.database, kind=alert.kind, error=str(error))
        self._control.alerts.told(alert, event, how)

    def _retrying(self) -> Retrying:
        return Retrying(
            retry=retry_if_exception_type(AlertNotDelivered),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_exponential(multiplier=0.5, max=5),
            sleep=self._sleep,
            reraise=True,
        )

    def _sleep(self, seconds: float) -> None:
        self._stop.wait(seconds)
