"""Who looks at a page: whoever logged in at a provider of identities, or whoever works on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st
from starlette.responses import PlainTextResponse
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.secrets import secrets_singleton

from engine.model.user import User
from engine.runtime.login import is_loopback
from engine.runtime.owner import owner
from engine.settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_PROVIDER_KEYS = ("client_id", "server_metadata_url")


def _auth() -> Mapping[str, Any]:
    """The table ``[auth]`` of the secrets; empty without one."""
    return secrets_singleton.get("auth", {}) if secrets_singleton.load_if_toml_exists() else {}


def is_login_configured() -> bool:
    """Whether a page is only for those who have logged in."""
    return bool(_auth())


def providers() -> list[str | None]:
    """The providers of identities by their names; None: the one that needs no name."""
    auth = _auth()
    named = [
        name
        for name, value in auth.items()
        if isinstance(value, Mapping) and any(key in value for key in _PROVIDER_KEYS)
    ]
    return [*([None] if "client_id" in auth else []), *named]


def is_logged_in() -> bool:
    """Whether somebody is known; where nobody has to log in, that is so."""
    return not is_login_configured() or bool(st.user.is_logged_in)


def who() -> User | str:
    """Who this run of a page is for: a name whose role is asked for at each call, or this machine's user.

    Only in the thread of a run: background work gets the engine that was asked for there.
    """
    if get_script_run_ctx(suppress_warning=True) is None:
        raise RuntimeError("who looks is known in a page's own thread alone")
    if not is_login_configured():
        return _of_this_machine()
    return name_of(st.user.to_dict()) if st.user.is_logged_in else ""


def connection_of_tab() -> Callable[[], bool]:
    """Says, on any thread and later, too, whether this browser tab is connected to the server.

    One whose connection was lost may come back within the two minutes that Streamlit remembers it.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or not runtime.exists():
        return lambda: True
    return partial(runtime.get_instance().is_active_session, context.session_id)


@st.cache_resource(show_spinner=False, scope="session")
def _of_this_machine() -> User:
    """Settings hold for as long as the tab is open: reading them takes a while, and all ask who looks."""
    return User(owner(), Settings().dashboard_role)


def name_of(claims: Mapping[str, Any]) -> str:
    """The name by which roles are given: the e-mail address, unless the provider says it is not verified.

    Then, and without one, it is the provider's own key of the user.
    """
    email = str(claims.get("email") or "").strip().lower()
    if email and claims.get("email_verified") not in (False, "false"):
        return email
    return str(claims.get("sub") or "")


class LoopbackOnly:
    """ASGI middleware: where nobody has to log in, only this machine is answered, whoever serves the app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on what may pass; others get 403."""
        if scope["type"] not in ("http", "websocket") or _may_pass(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await PlainTextResponse(_REFUSED, 403)(scope, receive, send)


def _may_pass(scope: Scope) -> bool:
    client = scope.get("client")
    return client is None or is_loopback(client[0]) or is_login_configured()


_REFUSED = (
    "This dashboard has no login, so it answers only the machine that it runs on. "
    "A table [auth] in the home's secrets.toml makes it ask who you are.\n"
)
