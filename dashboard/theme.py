"""Colours, glyphs and words, the same in every chart and table (never colour alone)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.model.change import Operation

NEUTRAL = "#7A828C"
ACCENT = "#3672D9"
HEALTHY = "#12A07A"
ATTENTION = "#B7791F"
FAILING = "#C8401F"
OVERLAP = "#A04FB5"
CLEANUP = "#9A8A3C"

CATEGORICAL = (
    "#3672D9",
    "#12A07A",
    "#C8401F",
    "#A04FB5",
    "#9A8A3C",
    "#1B8FA8",
    "#D06A1E",
    "#6B6FCF",
    "#7A828C",
    "#B84A78",
)
"""``chartCategoricalColors``: all ten, since a shorter list loses the theme's palette."""


ROW_HEIGHT = 33
"""Pixels of a table's row and of its header, at the base font size of ``.streamlit/config.toml``."""


def table_height(rows: int, most: int) -> int | Literal["content"]:
    """The height of an ``st.dataframe``: all its rows up to ``most``, else so many and half a one more."""
    return "content" if rows <= most else ROW_HEIGHT * (most + 1) + ROW_HEIGHT // 2


@dataclass(frozen=True, slots=True)
class OperationLook:
    """How one ``__$operation`` code looks everywhere: glyph, short code, word, colour, pattern."""

    glyph: str
    code: str
    word: str
    colour: str
    pattern: str = ""

    @property
    def label(self) -> str:
        """Glyph and word, for tables."""
        return f"{self.glyph} {self.word}"

    @property
    def tint(self) -> str:
        """The row background."""
        return self.colour + "22"


OPERATIONS: dict[Operation, OperationLook] = {
    Operation.DELETE: OperationLook("−", "D", "delete", "#C8401F"),
    Operation.INSERT: OperationLook("+", "I", "insert", "#12A07A"),
    Operation.UPDATE_OLD: OperationLook("‹", "UO", "update, before", "#9A8A3C", "/"),
    Operation.UPDATE_NEW: OperationLook("›", "UN", "update, after", "#3672D9"),
    Operation.MERGE: OperationLook("∗", "M", "merge", "#A04FB5"),
}

UPDATE = OperationLook("›", "U", "update", "#3672D9")
"""An update folded into one row, old → new."""


@dataclass(frozen=True, slots=True)
class StatusLook:
    """An icon, a word and Streamlit's colour name for one state; red means failing, nothing else.

    glyph: in the icon's place in tables, whose cells draw no icons.
    """

    icon: str
    word: str
    colour: str
    glyph: str

    @property
    def label(self) -> str:
        """Glyph and word, for tables."""
        return f"{self.glyph} {self.word}"


STATUS: dict[str, StatusLook] = {
    "healthy": StatusLook(":material/check_circle:", "Healthy", "green", "✓"),
    "attention": StatusLook(":material/warning:", "Attention", "orange", "!"),
    "failing": StatusLook(":material/error:", "Failing", "red", "✕"),
    "unknown": StatusLook(":material/help:", "Unknown", "gray", "?"),
}
