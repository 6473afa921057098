"""Changes: what changed, in what order, from what to what?"""

from __future__ import annotations

from dashboard import state
from dashboard.components import explorer, first_steps

view = state.selected()
if view is None:
    first_steps.no_database()
elif first_steps.is_first(view):
    first_steps.no_table(view)
else:
    explorer.explorer(view)
