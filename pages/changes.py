"""Changes: what changed, in what order, from what to what?"""

from __future__ import annotations

from dashboard.components import explorer, first_steps

view = first_steps.captured()
if view is not None:
    explorer.explorer(view)
