"""sys.sp_cdc_scan from outside: asks the agent, waits, raises what ended it (reference/procedures.md, 4)."""

from __future__ import annotations

from collections.abc import Callable

from engine.control import REPORTED, ControlDatabase
from engine.errors import AgentNotRunning, ScanFailed
from engine.model.scan_call import ScanCall
from engine.procedures.databases import Databases
from engine.procedures.job_rules import scan_parameters

_LOOK_AGAIN = 1.0
"""Seconds after which a wait looks at the call without news: the agent may have died silently."""
_LOOK_AT_STOP = 0.25
"""Seconds between two looks at whether the caller wants it to end."""


class Scans:
    """Scans of databases whose capture job does not run."""

    def __init__(self, control: ControlDatabase, databases: Databases) -> None:
        self._control = control
        self._databases = databases

    def run(
        self,
        database: str,
        maxtrans: int | None,
        maxscans: int | None,
        continuous: bool | int | None,
        pollinginterval: int | None,
        stop: Callable[[], bool] | None,
    ) -> None:
        """Returns when the scan has ended; see `engine.Engine.scan`."""
        parameters = scan_parameters(maxtrans, maxscans, continuous, pollinginterval)
        self._databases.enabled(database)
        if not self._control.agent_is_alive():
            raise AgentNotRunning
        placed = self._control.calls.placed(database, parameters)
        with self._control.listen(REPORTED) as listener, placed as number:
            call = self._ended(number, listener.wait, stop)
        if call.error is not None:
            error = call.error
            raise ScanFailed(error.number, error.severity, error.state, error.text)

    def _ended(
        self, number: int, wait: Callable[[float], object], stop: Callable[[], bool] | None
    ) -> ScanCall:
        """The call once its scan is over. Raises AgentNotRunning."""
        while True:
            call = self._control.calls.get(number)
            if call is None:
                raise AgentNotRunning("the database is gone, or not enabled any more")
            if call.ended or not (call.wanted or call.claimed):
                return call
            if stop is not None and call.wanted and stop():
                self._control.calls.withdraw(call)
            if not self._control.agent_is_alive():
                raise AgentNotRunning("it ended while it scanned")
            wait(_LOOK_AGAIN if stop is None else _LOOK_AT_STOP)
