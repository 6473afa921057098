"""Looks at what may not answer: each in a thread of its own that nobody has to wait for."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread
from typing import Generic, TypeVar

_Answer = TypeVar("_Answer")


class Look(Generic[_Answer]):
    """A call that may hang. Its thread keeps neither the caller nor the end of the process waiting."""

    def __init__(self, call: Callable[[], _Answer], name: str) -> None:
        self._call = call
        self.began = time.monotonic()
        self._answers: list[_Answer] = []
        self._errors: list[BaseException] = []
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether the call has ended."""
        return not self._thread.is_alive()

    def answer(self, seconds: float) -> _Answer | None:
        """What the call returned, or None while it still runs. Raises what it raised."""
        self._thread.join(max(0.0, seconds))
        if self._errors:
            raise self._errors[0]
        return self._answers[0] if self._answers else None

    def _run(self) -> None:
        try:
            self._answers.append(self._call())
        except BaseException as error:  # noqa: BLE001 - it is the asker's, in `answer`
            self._errors.append(error)
