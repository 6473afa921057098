"""A choice of ranges, or one of one's own that is typed, or set by dragging a chart.

One parameter of the address, because each that changes is a step of its own for the browser's Back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Literal

import streamlit as st

from dashboard import history

_HELP = (
    "Or typed: `now-3h … now-1h`, `2026-11-21 09:14 … 10:20`, `now-36h` for all since then; "
    "without an offset in the zone shown. Dragging a chart does the same, a double click takes it back."
)


@dataclass(frozen=True)
class RangePicker:
    """Ranges up to now by name, the first that is drawn, and the key of the choice."""

    key: str
    spans: Mapping[str, timedelta]
    default: str

    @property
    def chosen(self) -> str:
        """The choice, as the address has it."""
        return st.session_state.get(self.key) or st.query_params.get(self.key) or self.default

    @property
    def is_own(self) -> bool:
        """Whether the range is one of one's own."""
        return self.chosen not in self.spans

    def draw(self, label: str, visibility: Literal["visible", "collapsed"] = "visible") -> None:
        """A list that takes what is typed, too."""
        st.selectbox(
            label,
            [*self.spans, *([self.chosen] if self.is_own else [])],
            index=list(self.spans).index(self.default),
            key=self.key,
            bind="query-params",
            accept_new_options=True,
            width=264 if self.is_own else 110,
            help=_HELP if visibility == "visible" else None,
            label_visibility=visibility,
        )

    def range(self, now: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
        """Its two ends. ValueError says what is wrong with the one that was typed."""
        if self.is_own:
            return history.parse_range(self.chosen, now, zone)
        return now - self.spans[self.chosen], now

    def choose(self, ends: tuple[datetime, datetime] | None) -> None:
        """Another range, None: the default. For callbacks, since it may have been drawn in this run."""
        st.session_state[self.key] = self.default if ends is None else history.range_text(*ends)
