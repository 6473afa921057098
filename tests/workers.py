"""Which tests stay together when the suite runs in several processes."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

BROWSER = "tests/browser"


class OneHomeScheduling(LoadFileScheduling):
    """The tests of a file run in one process; those in a browser all do, as they share one running home."""

    def _split_scope(self, nodeid: str) -> str:
        return BROWSER if nodeid.startswith(f"{BROWSER}/") else super()._split_scope(nodeid)
