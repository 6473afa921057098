"""The alert hook from outside: show, set, try. In the original alerts are the job agent's business."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

from engine.control import ControlDatabase
from engine.errors import AlertHookInvalid
from engine.model.alert import Alert, AlertHook, AlertKind
from engine.monitoring.alert_delivery import deliver

LONGEST_TIMEOUT = 300
_LARGEST = {"lag_seconds": 2**31 - 1, "stall_seconds": 2**31 - 1, "slot_bytes": 2**63 - 1}


class Alerts:
    """Alerts of the databases of one control database."""

    def __init__(self, control: ControlDatabase) -> None:
        self._control = control

    def hook(self) -> AlertHook:
        """As it is set."""
        return self._control.alerts.hook()

    def set_hook(self, hook: AlertHook) -> None:
        """From now on. Raises AlertHookInvalid; then nothing has changed."""
        self._control.alerts.set_hook(checked(hook))

    def test(self) -> str:
        """Tells the hook of a test, from this process; how it took it. Raises what `deliver` raises."""
        hook = self.hook()
        if not hook.is_set:
            raise AlertHookInvalid("there is none yet")
        text = "A test: nothing is wrong."
        return deliver(hook, Alert(0, "", AlertKind.FAILURE, text, datetime.now(UTC)).as_dict("test"))

    def list(self, limit: int) -> list[Alert]:
        """The newest alerts, newest first."""
        return self._control.alerts.list(limit)


def checked(hook: AlertHook) -> AlertHook:
    """The hook, its command in one spelling. Pure. Raises AlertHookInvalid."""
    if hook.command is not None and hook.webhook is not None:
        raise AlertHookInvalid("give a command or a webhook, not both")
    for name, largest in _LARGEST.items():
        if not 0 < getattr(hook, name) <= largest:
            raise AlertHookInvalid(f"{name} must be above 0")
    if not 0 < hook.timeout_seconds <= LONGEST_TIMEOUT:
        raise AlertHookInvalid(f"timeout_seconds must lie between 1 and {LONGEST_TIMEOUT}")
    if hook.webhook is not None:
        _check_url(hook.webhook)
    return hook if hook.command is None else replace(hook, command=_command(hook.command))


def _command(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise AlertHookInvalid(f"the command cannot be read: {error}") from error
    if not words or "\0" in command:
        raise AlertHookInvalid("the command names no program")
    return shlex.join(words)


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_fit = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_fit = False
    if not is_fit or any(character.isspace() or character == "\0" for character in url):
        raise AlertHookInvalid(f"'{url}' is no http or https URL")
