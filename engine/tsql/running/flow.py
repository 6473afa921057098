"""How a statement leaves a loop or a batch."""

from __future__ import annotations

from engine.tsql.types import Value


class Left(Exception):  # noqa: N818 - no error
    """BREAK or CONTINUE."""

    def __init__(self, again: bool) -> None:
        self.again = again


class Returned(Exception):  # noqa: N818 - no error
    """RETURN."""


class ReturnedValue(Exception):  # noqa: N818 - no error
    """RETURN of a function."""

    def __init__(self, value: Value) -> None:
        self.value = value


class BatchEnded(Exception):  # noqa: N818 - the error was shown
    """An error that nobody caught and that ends the batch; it was shown."""
