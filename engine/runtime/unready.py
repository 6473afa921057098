# ruff: noqa: N818 - it names a state, not an error of the program
"""What keeps a home from running, said so that the reader can mend it."""

from __future__ import annotations


class Unready(Exception):
    """The machine or the home is not ready: what is wrong, then what to do about it.

    The command line prints ``str()``, without a traceback, and exits with 1.
    """

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem, fix)
        self.problem, self.fix = problem, fix

    def __str__(self) -> str:
        return f"{self.problem}\n{self.fix}"
