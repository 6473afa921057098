"""Collector: is history collected, how often, how long is it kept, where are gaps?"""

from __future__ import annotations

from dashboard import state
from dashboard.components.collector_page import collector_page

state.live(collector_page)
