"""Errors with the original's numbers (reference/errors.md): what callers catch and what users read."""

from __future__ import annotations

from typing import ClassVar


class CdcError(Exception):
    """An error as the original reports it: number, severity, state and text.

    ``str()`` is the text; ``line()`` the form ``Msg N, Level L, State S: text``.
    """

    number: ClassVar[int] = 50000
    severity: ClassVar[int] = 16
    state: ClassVar[int] = 1

    def line(self) -> str:
        """The one-line form that the command line prints on stderr."""
        return f"Msg {self.number}, Level {self.severity}, State {self.state}: {self}"
