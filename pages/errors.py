"""Errors: what failed, in which phase, at which LSN, and what to do."""

from __future__ import annotations

from dashboard import state
from dashboard.components import first_steps
from dashboard.components.error_list import error_list


def errors() -> None:
    """Groups and the selected one, at every tick: the next error may be worse."""
    now = state.selected()
    if now is not None:
        error_list(now)


view = state.selected()
if view is None:
    first_steps.no_database()
elif first_steps.is_first(view) and not view.errors:
    first_steps.no_table(view)
else:
    state.live(errors)
