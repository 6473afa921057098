"""Keeps what a fragment asked for on one page from taking the next page away.

A timer's tick that leaves the browser before the browser knows that the page changes still names the old
page. Streamlit (1.67) lets it: a tick that joins a full run which has not begun turns that run back to the
old page, and one that waits behind the new page's run is run as the old page's, whereupon the browser drops
everything the new page had drawn and fails at the next part ("Bad delta path index"). Streamlit has no
setting against either, so `install` puts a check before the two functions that decide it. They are
Streamlit's own: its version is pinned, and tests/dashboard/test_late_reruns.py fails where they change.
A fragment is known by its name and place, so those of different pages need different names: `state.of_page`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests, ScriptRequestType

_Request = Callable[[ScriptRequests, RerunData], bool]
_Run = Callable[[ScriptRunner, RerunData], None]


def install() -> None:
    """Puts both checks in place, for all sessions of this process; once, however often it is called."""
    if not hasattr(ScriptRequests._request_rerun_locked, "__wrapped__"):
        ScriptRequests._request_rerun_locked = _keeping_page(ScriptRequests._request_rerun_locked)  # type: ignore[assignment, method-assign]
        ScriptRunner._run_script = _of_this_page(ScriptRunner._run_script)  # type: ignore[assignment, method-assign]


def _keeping_page(original: _Request) -> _Request:
    """A full run that waits keeps its page, whatever a fragment asks for meanwhile: it draws that too."""

    @wraps(original)
    def request(self: ScriptRequests, asked: RerunData) -> bool:
        waits, waiting = self._state == ScriptRequestType.RERUN, self._rerun_data
        is_taken = original(self, asked)
        if waits and asked.fragment_id and not waiting.fragment_id_queue:
            self._rerun_data = replace(
                self._rerun_data,
                query_string=waiting.query_string,
                page_script_hash=waiting.page_script_hash,
                page_name=waiting.page_name,
                is_auto_rerun=waiting.is_auto_rerun,
            )
        return is_taken

    return request


def _of_this_page(original: _Run) -> _Run:
    """Fragments that are gone, with their page, are not run, not even in name.

    Which page is shown can't be asked for here: a run that was stopped a moment ago may still write it.
    """

    @wraps(original)
    def run(self: ScriptRunner, asked: RerunData) -> None:
        fragments = asked.fragment_id_queue
        if not fragments or any(map(self._fragment_storage.contains, fragments)):
            original(self, asked)

    return run
