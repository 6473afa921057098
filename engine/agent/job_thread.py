"""A job's thread: told to stop, it ends at its next good place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import Event, Thread


class JobThread(ABC):
    """Runs once, in a thread that ends with the process."""

    def __init__(self, name: str) -> None:
        self._stop = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    @property
    def alive(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop."""
        return self._stop.is_set()

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def join(self) -> None:
        """Waits until the thread has ended."""
        self._thread.join()

    @abstractmethod
    def _run(self) -> None:
        """What the thread does; it lets no error out that is not the process's end."""
