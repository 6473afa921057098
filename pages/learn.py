"""Learn: how change data capture works, on live data."""

from __future__ import annotations

from dashboard import state
from dashboard.components import first_steps
from dashboard.components.learn_page import learn_page

view = state.selected()
if view is None:
    first_steps.no_database()
else:
    learn_page(view.name)
