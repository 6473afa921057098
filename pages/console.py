"""Console: T-SQL, typed and run."""

from __future__ import annotations

from dashboard import state
from dashboard.components import first_steps
from dashboard.components.console_page import console_page

view = state.selected()
if view is None:
    first_steps.no_database()
else:
    console_page(view.name)
