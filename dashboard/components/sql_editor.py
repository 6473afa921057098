"""The editor of the console: CodeMirror from our own server, with completion and a run button."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import streamlit as st

CODEMIRROR = Path(__file__).parents[1] / "editor" / "codemirror.js"

_HTML = """<div class="sql-editor"><div class="sql-text"></div>
<div class="sql-bar"><button type="button">Run</button><span>Ctrl+Enter or F5 runs what is selected, else all;
Ctrl+Space completes</span></div><div class="sql-lost" role="status"></div></div>"""
_CSS = """
.sql-editor { display: flex; flex-direction: column; gap: 0.5rem; }
.sql-text { height: 240px; overflow: hidden; resize: vertical; border-radius: 6px;
  border: 1px solid var(--st-border-color); }
.sql-bar { display: flex; gap: 0.75rem; align-items: center; font-size: 0.87rem;
  color: var(--st-text-color); }
.sql-bar span { opacity: 0.75; }
.sql-lost:empty { display: none; }
.sql-lost { padding: 0.6rem 0.8rem; border-radius: 6px; font-size: 0.93rem;
  color: var(--st-orange-text-color); background: var(--st-orange-background-color); }
.sql-bar button { font: inherit; font-weight: 600; padding: 0.4rem 1rem; border-radius: 6px; cursor: pointer;
  color: var(--st-background-color); background: var(--st-primary-color); border: 1px solid transparent; }
.sql-bar button:disabled { opacity: 0.5; cursor: default; }
.sql-bar button:focus-visible { outline: 2px solid var(--st-text-color); outline-offset: 2px; }
"""


@cache
def codemirror_route() -> str:
    """Where the server has CodeMirror; another version is another address, so browsers may keep it."""
    return f"/api/codemirror-{sha256(CODEMIRROR.read_bytes()).hexdigest()[:12]}.js"


@cache
def _component() -> Any:
    script = Path(__file__).with_name("sql_editor.js").read_text(encoding="utf-8")
    return st.components.v2.component(
        "highwater_sql_editor", html=_HTML, css=_CSS, js=script, isolate_styles=False
    )


def sql_editor(
    key: str,
    text: str,
    words: Sequence[str],
    insert: dict[str, str] | None,
    is_busy: bool,
    ran: str | None,
    database: str,
    session: str,
    on_run: Callable[[], None],
    on_text: Callable[[], None],
) -> None:
    """Draws it. ``text``: what it begins with; ``insert``: a snippet, new where its ``mark`` is;
    ``ran``: the mark of the last wish that was heard; ``session``: the token of the console of ``database``.
    Where a database's session is another than this browser tab has known, the editor says that it was lost.

    The callbacks find in ``st.session_state[key]`` what was typed (``text``) and what is to run (``run``:
    its text, first line, all that was typed, the ``session`` it is for, and a ``mark`` of its own).
    """
    base = str(st.get_option("server.baseUrlPath")).strip("/")
    root = f"/{base}" if base else ""
    _component()(
        key=key,
        data={
            "text": text,
            "words": list(words),
            "insert": insert,
            "busy": is_busy,
            "ran": ran,
            "database": database,
            "session": session,
            "source": root + codemirror_route(),
            "leave": f"{root}/api/console/{session}/leave",
        },
        on_run_change=on_run,
        on_text_change=on_text,
    )
