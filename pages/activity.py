"""Activity: who did what, when, in T-SQL, and how it ended."""

from __future__ import annotations

from dashboard import state
from dashboard.components.activity_list import activity_list

state.live(activity_list)
