"""LSNs as they are written on the command line."""

from __future__ import annotations

from engine.errors import LsnInvalid
from engine.model.lsn import Lsn


def parse_lsn(text: str) -> Lsn:
    """``0x`` and 20 hex digits, or ``8:8:4``. Raises LsnInvalid."""
    try:
        return Lsn.parse(text)
    except ValueError as error:
        raise LsnInvalid(error) from error
