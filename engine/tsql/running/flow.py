"""How a statement leaves a loop or a batch."""

from __future__ import annotations


class Left(Exception):  # noqa: N818 - no error
    """BREAK or CONTINUE."""

    def __init__(self, again: bool) -> None:
        self.again = again


class Returned(Exception):  # noqa: N818 - no error
    """RETURN."""


class BatchEnded(Exception):  # noqa: N818 - the error was shown
    """An error that nobody caught and that ends the batch; it was shown."""
