"""Tells the alert hook of what nobody has told it yet, whoever raised it."""

from __future__ import annotations

from threading import Event

import structlog
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from engine.control.database import ControlDatabase
from engine.errors import AlertNotDelivered
from engine.model.alert import Alert, AlertHook
from engine.monitoring.alert_delivery import deliver

_log = structlog.get_logger(__name__)

ATTEMPTS = 3
"""How often an alert is tried to be told before the failure is written down instead."""


class AlertTeller:
    """Several may tell at once: each alert is told by one of them. ``stop`` ends it after one alert."""

    def __init__(self, control: ControlDatabase, stop: Event) -> None:
        self._control = control
        self._stop = stop

    def tell(self, hook: AlertHook) -> None:
        """All that is untold, the oldest first. Raises ControlUnreachable."""
        while not self._stop.is_set() and (alert := self._control.alerts.claim()) is not None:
            self._tell(hook, alert)

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
