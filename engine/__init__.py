"""Highwater's engine: change data capture as SQL Server has it, over any source's log.

``Engine`` is the way in, ``Settings`` says which home; positions are ``Lsn``, errors are `CdcError`.
Names are imported when they are first used: the command line need not load what it does not call.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.engine import Engine as Engine
    from engine.errors import CdcError as CdcError
    from engine.model.lsn import Lsn as Lsn
    from engine.settings import Settings as Settings

_HOMES = {
    "CdcError": "engine.errors",
    "Engine": "engine.engine",
    "Lsn": "engine.model.lsn",
    "Settings": "engine.settings",
}

__all__ = ["CdcError", "Engine", "Lsn", "Settings"]


def __getattr__(name: str) -> object:
    """A public name, from the module that has it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
