"""A switch between the scales of a chart, in the heading of its card and in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

AUTO, LOG, LINEAR = "auto", "log", "linear"


@dataclass(frozen=True)
class ScaleSwitch:
    """``key``: its parameter in the address; the first of ``scales`` is drawn until another is chosen."""

    key: str
    scales: Sequence[str]

    @property
    def chosen(self) -> str:
        """The scale to draw, before the switch itself is drawn too."""
        found = st.session_state.get(self.key) or st.query_params.get(self.key)
        return found if found is not None and found in self.scales else self.scales[0]

    def draw(self) -> None:
        """The switch."""
        st.segmented_control(
            "Scale",
            list(self.scales),
            default=self.scales[0],
            required=True,
            key=self.key,
            bind="query-params",
            label_visibility="collapsed",
        )
