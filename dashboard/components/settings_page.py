"""What the page Settings shows: who may do what, what holds for everybody's dashboard, alert thresholds."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import identity, state, statements
from dashboard.components.permission import permitted
from dashboard.components.problem import attempt, escaped, last_problem
from dashboard.components.row_table import row_table
from dashboard.components.statement_box import statement_popover
from engine.errors import CdcError
from engine.model.alert import AlertHook
from engine.model.dashboard import ZONES, DashboardSettings
from engine.model.user import Membership, Role

MEANINGS = {
    Role.VIEWER: "sees everything and downloads changes, as far as gating roles allow",
    Role.OPERATOR: "also starts, stops and tunes capture, runs cleanup, collects history",
    Role.ADMIN: "also enables and disables, says how long changes are kept, gives roles",
}
_NAME, _ROLE, _PRINCIPAL = "u_name", "u_role", "u_principal"
_NOT_GIVEN, _NOT_SET, _NOT_HOOKED, _SAVED = "u_not_given", "u_not_set", "u_not_hooked", "u_saved"
LOGIN = """[auth]
redirect_uri = "https://highwater.example.com/oauth2callback"
cookie_secret = "a long random text"
client_id = "highwater"
client_secret = "from your provider"
server_metadata_url = "https://login.example.com/.well-known/openid-configuration"
"""


def settings_page() -> None:
    """Three cards; what only an admin may change is off for others and says so."""
    if st.session_state.pop(_SAVED, False):
        st.toast("Saved.", icon=":material/save:")
    missing = state.lacking("set_role")
    if missing is not None:
        st.info(f"Only an admin changes settings. {missing}", icon=":material/lock:")
    with st.container(border=True, key="u_roles"):
        _roles()
    left, right = st.columns(2)
    with left, st.container(border=True, key="u_dashboard"):
        _dashboard()
    with right, st.container(border=True, key="u_alerts"):
        _alerts()


def _saved(key: str, action: object) -> None:
    st.session_state[_SAVED] = attempt(action, key)  # type: ignore[arg-type]
    state.changed()


# Users and roles


def _roles() -> None:
    st.markdown("## Users and roles", anchors=False)
    st.markdown("  \n".join(f"**{role}** {meaning}" for role, meaning in MEANINGS.items()))
    if not identity.is_login_configured():
        st.info(
            "This dashboard has no login: it answers this machine alone, and whoever works here is "
            f"**{state.user().role}** (setting `dashboard_role`). Roles hold once the home's `secrets.toml` "
            "says which OpenID Connect provider to ask.",
            icon=":material/person:",
        )
        with st.expander("A login with OpenID Connect", type="compact", icon=":material/login:"):
            st.code(LOGIN, language="toml")
            st.caption("In `<home>/secrets.toml`; then start again, with `HIGHWATER_ADDRESS` for others.")
    members = list(state.engine().users())
    chosen = _members(members) if members else None
    if chosen is not None:
        _fill(chosen)
    _give(chosen)


def _members(members: list[Membership]) -> Membership | None:
    now = state.now()
    frame = pd.DataFrame(
        {
            "user": [each.name for each in members],
            "role": [str(each.role) for each in members],
            "principal": [each.principal or "" for each in members],
            "changed": [fmt.ago(each.changed_at, now) for each in members],
            "by": [each.changed_by for each in members],
        }
    )
    row = row_table(frame, "u_members", "Users and their roles", 8)
    return None if row is None else members[row]


def _fill(member: Membership) -> None:
    """The form begins with the user that was selected."""
    if st.session_state.get("u_filled") != member:
        st.session_state["u_filled"] = member
        st.session_state[_NAME] = member.name
        st.session_state[_ROLE] = member.role
        st.session_state[_PRINCIPAL] = member.principal or ""


def _give(chosen: Membership | None) -> None:
    fields = st.grid(3, min_column_width=200)
    missing = state.lacking("set_role")
    is_off = missing is not None
    name = fields.text_input(
        "User", key=_NAME, live=True, disabled=is_off, placeholder="ann@example.com", help=_NAME_HELP
    ).strip()
    role = fields.selectbox("Role", list(Role), key=_ROLE, disabled=is_off) or Role.VIEWER
    principal = fields.text_input(
        "Role of the sources",
        key=_PRINCIPAL,
        live=True,
        disabled=is_off,
        placeholder="none",
        help=_PRINCIPAL_HELP,
    ).strip()
    last_problem(_NOT_GIVEN)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Give the role",
            type="primary",
            icon=":material/person_add:",
            key="u_give",
            on_click=_set_role,
            **permitted("set_role", disabled=not name),
        )
        if chosen is not None:
            st.button(
                f"Take the role of {chosen.name}",
                icon=":material/person_remove:",
                key="u_take",
                on_click=_drop_role,
                args=(chosen.name,),
                **permitted("drop_role"),
            )
        if name:
            statement_popover(statements.set_role(name, role, principal or None))


_NAME_HELP = "What the provider of identities calls them: a verified e-mail address, else their key there."
_PRINCIPAL_HELP = (
    "Whose change data they see (gating roles), and whose rights their statements have at the sources. "
    "Without one, viewers and operators see what no gating role keeps and run no SQL at a source."
)


def _set_role() -> None:
    """Asks for what the fields hold now: the click may come before a run has drawn it."""
    typed = st.session_state
    name, role, principal = typed.get(_NAME, ""), typed[_ROLE], typed.get(_PRINCIPAL, "").strip()
    _saved(_NOT_GIVEN, lambda: state.engine().set_role(name, role, principal or None))


def _drop_role(name: str) -> None:
    _saved(_NOT_GIVEN, lambda: state.engine().drop_role(name))


# The dashboard


def _dashboard() -> None:
    st.markdown("## Dashboard", anchors=False)
    is_off = state.lacking("set_dashboard_settings") is not None
    now = state.engine().dashboard_settings()
    if st.session_state.get("u_of") != now:
        st.session_state["u_of"] = now
        st.session_state["u_exports"], st.session_state["u_zone"] = now.exports, now.zone
    st.toggle("Downloads of change data", key="u_exports", disabled=is_off, help=_EXPORTS_HELP)
    st.segmented_control(
        "Times, until a viewer chooses", list(ZONES), key="u_zone", required=True, disabled=is_off
    )
    last_problem(_NOT_SET)
    wanted = _wanted()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Save",
            type="primary",
            icon=":material/save:",
            key="u_save",
            on_click=_save,
            **permitted("set_dashboard_settings", disabled=wanted == now),
        )
        statement_popover(statements.set_dashboard_settings(wanted.exports, wanted.zone))


_EXPORTS_HELP = "Off: the buttons go, and the engine refuses. Each download is in Activity, with its query."


def _wanted() -> DashboardSettings:
    return DashboardSettings(bool(st.session_state["u_exports"]), str(st.session_state["u_zone"] or ZONES[0]))


def _save() -> None:
    _saved(_NOT_SET, lambda: state.engine().set_dashboard_settings(_wanted()))


# Alerts

_THRESHOLDS = {
    "lag_seconds": "Lag, seconds",
    "stall_seconds": "Stall, seconds",
    "slot_bytes": "Log kept by the source, bytes",
}
_MOST = {"lag_seconds": 2**31 - 1, "stall_seconds": 2**31 - 1, "slot_bytes": 2**53 - 1}
_MEANINGS = {
    "lag_seconds": "Told when capture is further behind.",
    "stall_seconds": "Told when nothing is published for longer, though the log goes on.",
    "slot_bytes": "Told when the source keeps more log for capture.",
}


def _alerts() -> None:
    st.markdown("## Alert thresholds", anchors=False)
    if (missing := state.lacking("alert_hook")) is not None:
        st.caption(f"Who is told, and from where on. {missing}")
        return
    try:
        now = state.engine().alert_hook()
    except CdcError as error:
        st.error(escaped(str(error)))
        return
    if st.session_state.get("u_hook_of") != now:
        st.session_state["u_hook_of"] = now
        for name in _THRESHOLDS:
            st.session_state[f"u_{name}"] = getattr(now, name)
    for name, label in _THRESHOLDS.items():
        st.number_input(label, 1, _MOST[name], step=1, key=f"u_{name}", help=_MEANINGS[name])
    told = "a command" if now.command else "a webhook" if now.webhook else "nobody yet"
    held = fmt.size(int(st.session_state["u_slot_bytes"]))
    st.caption(f"{held} of log. Alerts go to {told}; `highwater alerts hook` says to whom.")
    last_problem(_NOT_HOOKED)
    st.button(
        "Save",
        type="primary",
        icon=":material/save:",
        key="u_save_hook",
        on_click=_save_hook,
        args=(now,),
        **permitted("set_alert_hook", disabled=_hook(now) == now),
    )


def _hook(now: AlertHook) -> AlertHook:
    lag, stall, slot = (int(st.session_state[f"u_{name}"]) for name in _THRESHOLDS)
    return replace(now, lag_seconds=lag, stall_seconds=stall, slot_bytes=slot)


def _save_hook(now: AlertHook) -> None:
    _saved(_NOT_HOOKED, lambda: state.engine().set_alert_hook(_hook(now)))
