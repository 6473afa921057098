"""sys.fn_cdc_increment_lsn and sys.fn_cdc_decrement_lsn (reference/functions.md, 2); without Spark."""

from __future__ import annotations

from engine.errors import LsnOverflow
from engine.model.lsn import Lsn


def increment_lsn(lsn: Lsn | None) -> Lsn | None:
    """The next LSN, nothing between. NULL gives NULL.

    Neither NULL nor the top is documented: NULL in, NULL out is what T-SQL's functions do, and a number
    that does not fit is its arithmetic overflow. Raises LsnOverflow (8115) at the highest LSN.
    """
    if lsn == Lsn.MAX:
        raise LsnOverflow(lsn, "next")
    return None if lsn is None else lsn.next()


def decrement_lsn(lsn: Lsn | None) -> Lsn | None:
    """The LSN before, nothing between. NULL gives NULL.

    As `increment_lsn`; raises LsnOverflow (8115) at zero.
    """
    if lsn == Lsn.ZERO:
        raise LsnOverflow(lsn, "previous")
    return None if lsn is None else lsn.previous()
