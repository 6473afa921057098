"""Keeps what a run of the whole page drew on its way to the browser, though a fragment runs next.

A run that begins before the browser was sent what the last one drew makes Streamlit (1.67) drop that which
is to be drawn again. For a run of the whole page that is right. A fragment's run drops its own parts, too,
of a page that was drawn anew a moment ago, while the rest of that page, and that it is finished, is sent: the
browser takes the missing part away, moves those below up into its place, and puts the fragment, when it
comes, over one of them. So the result of a statement was gone when its editor had just sent what was typed.

``install`` lets a fragment's run drop nothing: all goes as it would, had the browser been sent it in time.
The function is Streamlit's own: its version is pinned, and tests/dashboard/test_undelivered.py fails where it
changes, or no longer needs this.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

_Clear = Callable[..., None]


def install() -> None:
    """Puts it in place, for all sessions of this process; once, however often it is called."""
    if not hasattr(ForwardMsgQueue.clear, "__wrapped__"):
        ForwardMsgQueue.clear = _all_kept_for_fragments(ForwardMsgQueue.clear)  # type: ignore[method-assign]


def _all_kept_for_fragments(original: _Clear) -> _Clear:
    @wraps(original)
    def clear(
        self: ForwardMsgQueue,
        retain_lifecycle_msgs: bool = False,
        fragment_ids_this_run: list[str] | None = None,
    ) -> None:
        if fragment_ids_this_run is None:
            original(self, retain_lifecycle_msgs)
        else:
            self._delta_index_map = {}  # what is drawn from here on takes no earlier message's place

    return clear
