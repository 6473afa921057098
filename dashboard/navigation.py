"""Which pages there are, and where they stand."""

from __future__ import annotations

SECTIONS = {
    "": {
        "overview": ("Overview", "monitor_heart"),
        "tables": ("Tables", "table_chart"),
        "changes": ("Changes", "history"),
        "capture": ("Capture", "speed"),
        "cleanup": ("Cleanup", "cleaning_services"),
        "history": ("History", "timeline"),
        "schema": ("Schema", "schema"),
        "errors": ("Errors", "error"),
    },
    "Operate": {
        "console": ("Console", "terminal"),
        "collector": ("Collector", "inventory"),
        "activity": ("Activity", "receipt_long"),
    },
    "More": {"learn": ("Learn", "school"), "settings": ("Settings", "settings")},
}
"""Pages by section: the file in pages/, which is the path too, then title and icon.

Those that monitor stand in the bar by themselves, one click away; the other sections are menus.
"""

RANGED = frozenset({"overview", "tables", "capture", "schema", "collector"})
"""Pages with charts over the header's range. History has a range of days, which is its own."""
TIMED = frozenset(name for pages in SECTIONS.values() for name in pages) - {"console", "learn", "settings"}
"""Pages that show times in the header's zone."""
OF_ALL_DATABASES = frozenset({"activity", "collector", "settings"})
"""Pages on which the header's database means nothing."""
