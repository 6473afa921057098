"""Schema: which DDL hit captured tables, and the way to a capture instance that follows it."""

from __future__ import annotations

from dashboard import state
from dashboard.components import first_steps
from dashboard.components.schema_page import schema_page


def schema() -> None:
    """All of it at every tick: the wizard goes on when the metadata does."""
    now = state.selected()
    if now is not None and now.instances:
        schema_page(now)


if first_steps.captured() is not None:
    state.live(schema)
