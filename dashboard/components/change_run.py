"""The question that a tab asked last: its answer's page and row, and the file that is made of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from dashboard import state
from dashboard.changes import Place
from dashboard.downloads import Shelf
from dashboard.operations import Operation as Work
from dashboard.reading import ChangeQuery


@dataclass(slots=True, weakref_slot=True)
class Run:
    """What this viewer asked last: the question as typed, the query it came to, the page and row shown.

    wanted: a change whose page is shown; ``is_sought``: until it was selected there. shelf, download: the
    file that is prepared of the answer.
    """

    shelf: Shelf = field(default_factory=lambda: state.downloads().shelf())
    asked: object = None
    query: ChangeQuery | None = None
    number: int = 0
    page: int = 0
    wanted: Place | None = None
    is_sought: bool = False
    selected: int | None = None
    clicked: int | None = None
    download: Work | None = None

    def turn_to(self, page: int) -> None:
        """Another page of the same answer."""
        self.page, self.wanted, self.selected, self.clicked = page, None, None, None

    def ask_again(self) -> None:
        """The same question to what readers see now."""
        self.number += 1
        self.turn_to(0)
        if self.download is not None:
            self.download.cancel()
        self.download = None
        self.shelf.clear()

    def look_for(self, place: Place) -> None:
        """The page of the same question that has this change."""
        self.ask_again()
        self.wanted, self.is_sought = place, True

    @property
    def question(self) -> str:
        """Names the question as it was asked this time."""
        return f"{self.shelf.token}:{self.number}"

    @property
    def key(self) -> str:
        """The key of the background operation that answers it."""
        return f"changes:{self.question}:{self.page if self.wanted is None else self.wanted}"
