"""The focus of a dialog that has just opened, or asks on: into its box, so that one types at once."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st


@cache
def _component() -> Any:
    script = Path(__file__).with_name("first_focus.js").read_text(encoding="utf-8")
    return st.components.v2.component("highwater_first_focus", js=script, isolate_styles=False)


def first_focus(box: str, mark: str = "opened") -> None:
    """Draws nothing. Gives the focus to the widget of that key, which stands above it in the dialog, once
    for each ``mark``.
    """
    _component()(key=f"{box}_focus", data={"box": box, "mark": mark}, height=1)
