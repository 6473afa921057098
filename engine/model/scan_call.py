"""A call of sys.sp_cdc_scan (reference/procedures.md, 4) on its way through the control database."""

from __future__ import annotations

from dataclasses import dataclass

from engine.model.job import CaptureParameters

CALLED_SESSION = "a call of sp_cdc_scan"
"""What error 22903 names while a called scan runs."""


@dataclass(frozen=True, slots=True)
class ReportedError:
    """An error that the agent met on behalf of another process, as that one is to raise it."""

    number: int
    severity: int
    state: int
    text: str


@dataclass(frozen=True, slots=True)
class ScanCall:
    """A call and how far it is.

    ``wanted`` is False once the caller asked it to end; ``claimed`` True once an agent has taken it;
    ``ended`` with the ``error`` that ended it, None where it went well.
    """

    call_id: int
    database: str
    parameters: CaptureParameters
    wanted: bool
    claimed: bool
    ended: bool
    error: ReportedError | None
