"""What a role lacks, on a page: buttons that are off and say which role they need; and who may not enter."""

from __future__ import annotations

from typing import TypedDict

import streamlit as st

from dashboard import identity, state
from dashboard.components.problem import escaped


class Permitted(TypedDict):
    """Arguments of a button."""

    disabled: bool
    help: str | None


def permitted(
    method: str, *, disabled: bool = False, help: str | None = None, **arguments: object
) -> Permitted:
    """For a button that calls that method of the engine: off, with the missing role, where it may not."""
    missing = state.lacking(method, **arguments)
    return Permitted(disabled=disabled or missing is not None, help=missing)


def say_missing(method: str, **arguments: object) -> None:
    """The same as a line of its own, for whoever does not point with a mouse."""
    missing = state.lacking(method, **arguments)
    if missing is not None:
        st.caption(f":material/lock: {missing}")


def login_page() -> None:
    """Nobody is known yet: the way to the provider of identities."""
    st.title("Highwater", anchor=False)
    with st.container(border=True, width=480):
        st.markdown("## Log in", anchors=False)
        st.markdown("This dashboard shows change data of databases, so it asks who you are.")
        for provider in identity.providers():
            label = "Log in" if provider is None else f"Log in with {provider}"
            arguments = () if provider is None else (provider,)
            st.button(
                label,
                type="primary",
                icon=":material/login:",
                key=f"login_{provider or ''}",
                on_click=st.login,
                args=arguments,
            )


def refused_page(name: str) -> None:
    """Somebody is known and has no role, or none any more."""
    st.title("Highwater", anchor=False)
    with st.container(border=True, width=640):
        st.markdown("## You have no role here", anchors=False)
        st.markdown(
            f"You are logged in as **{escaped(name)}**. An admin gives you a role on the page Settings; "
            "whoever owns the home does so on its machine:"
        )
        st.code(f"highwater roles set {name} viewer", language="bash", wrap_lines=True)
        with st.container(horizontal=True):
            st.button("Try again", icon=":material/refresh:", type="primary", key="refused_again")
            log_out_button()


def who_is_here() -> None:
    """The user with the role, in the header; without a login the badge "local"."""
    user = state.user()
    if not identity.is_login_configured():
        st.badge(
            f"local {user.role}",
            icon=":material/person:",
            color="gray",
            help=f"No login is configured: whoever works on this machine is {user.role} (dashboard_role).",
        )
        return
    with st.popover(str(user.role), icon=":material/person:", type="tertiary", key="who"):
        st.markdown(f"**{escaped(user.name)}**")
        st.caption(
            f"Role {user.role}. "
            + (f"Change data as `{user.principal}`." if user.principal else "No role of the sources.")
        )
        log_out_button()


def log_out_button() -> None:
    """Back to nobody."""
    st.button("Log out", icon=":material/logout:", key="logout", on_click=st.logout)
