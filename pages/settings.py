"""Settings: who may do what, and what holds for everybody's dashboard."""

from __future__ import annotations

from dashboard.components.settings_page import settings_page

settings_page()
