"""What the page Settings shows: who may do what, what holds for everybody's dashboard, alert thresholds."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import identity, state, statements
from dashboard.components.form_field import FormField, changed
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
    row = row_table(frame, "u_members", "Users and their roles", 8, rows=[each.name for each in members])
    return None if row is None else members[row]


class _RoleForm:
    """The fields of a user's role; they begin with the user that was selected."""

    def __init__(self, chosen: Membership | None) -> None:
        self.name = FormField("u_name", chosen.name if chosen else "", chosen)
        self.role = FormField("u_role", chosen.role if chosen else Role.VIEWER, chosen)
        self.principal = FormField("u_principal", (chosen.principal if chosen else "") or "", chosen)

    @property
    def typed(self) -> tuple[str, Role, str | None]:
        """Name, role and principal as they would be given."""
        return self.name.typed.strip(), self.role.typed or Role.VIEWER, self.principal.typed.strip() or None


def _give(chosen: Membership | None) -> None:
    form = _RoleForm(chosen)
    fields = st.grid(3, min_column_width=200)
    missing = state.lacking("set_role")
    is_off = missing is not None
    fields.text_input(
        "User",
        form.name.begins,
        key=form.name.key,
        live=True,
        disabled=is_off,
        placeholder="ann@example.com",
        help=_NAME_HELP,
    )
    roles = list(Role)
    fields.selectbox("Role", roles, roles.index(form.role.begins), key=form.role.key, disabled=is_off)
    fields.text_input(
        "Role of the sources",
        form.principal.begins,
        key=form.principal.key,
        live=True,
        disabled=is_off,
        placeholder="none",
        help=_PRINCIPAL_HELP,
    )
    name, role, principal = form.typed
    last_problem(_NOT_GIVEN)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Give the role",
            type="primary",
            icon=":material/person_add:",
            key="u_give",
            on_click=_set_role,
            args=(form,),
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
            statement_popover(statements.set_role(name, role, principal))


_NAME_HELP = "What the provider of identities calls them: a verified e-mail address, else their key there."
_PRINCIPAL_HELP = (
    "Whose change data they see (gating roles), and whose rights their statements have at the sources. "
    "Without one, viewers and operators see what no gating role keeps and run no SQL at a source."
)


def _set_role(form: _RoleForm) -> None:
    """Asks for what the fields hold now: the click may come before a run has drawn it."""
    name, role, principal = form.typed
    _saved(_NOT_GIVEN, lambda: state.engine().set_role(name, role, principal))


def _drop_role(name: str) -> None:
    _saved(_NOT_GIVEN, lambda: state.engine().drop_role(name))


# The dashboard


class _DashboardForm:
    """The fields of what holds for everybody's dashboard."""

    def __init__(self, now: DashboardSettings) -> None:
        self._now = now
        self.exports = FormField("u_exports", now.exports, now)
        self.zone = FormField("u_zone", now.zone, now)

    @property
    def typed(self) -> DashboardSettings:
        """The settings as they would be saved."""
        return DashboardSettings(bool(self.exports.typed), str(self.zone.typed or ZONES[0]))

    def save(self) -> None:
        """Changes what was typed anew; the rest stays as it is by now."""
        engine = state.engine()
        given = changed(self.typed, self._now)
        engine.set_dashboard_settings(replace(engine.dashboard_settings(), **given))


def _dashboard() -> None:
    st.markdown("## Dashboard", anchors=False)
    is_off = state.lacking("set_dashboard_settings") is not None
    now = state.engine().dashboard_settings()
    form = _DashboardForm(now)
    st.toggle(
        "Downloads of change data",
        form.exports.begins,
        key=form.exports.key,
        disabled=is_off,
        help=_EXPORTS_HELP,
    )
    st.segmented_control(
        "Times, until a viewer chooses",
        list(ZONES),
        default=form.zone.begins,
        key=form.zone.key,
        required=True,
        disabled=is_off,
    )
    last_problem(_NOT_SET)
    wanted = form.typed
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Save",
            type="primary",
            icon=":material/save:",
            key="u_save",
            on_click=_save,
            args=(form,),
            **permitted("set_dashboard_settings", disabled=wanted == now),
        )
        statement_popover(statements.set_dashboard_settings(wanted.exports, wanted.zone))


_EXPORTS_HELP = "Off: the buttons go, and the engine refuses. Each download is in Activity, with its query."


def _save(form: _DashboardForm) -> None:
    _saved(_NOT_SET, form.save)


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


class _HookForm:
    """The fields of the alert hook's thresholds."""

    def __init__(self, now: AlertHook) -> None:
        self.fields = {name: FormField(f"u_{name}", int(getattr(now, name)), now) for name in _THRESHOLDS}
        self._now = now

    @property
    def typed(self) -> AlertHook:
        """The hook as it would be saved: whom it tells stays."""
        lag, stall, slot = (int(field.typed) for field in self.fields.values())
        return replace(self._now, lag_seconds=lag, stall_seconds=stall, slot_bytes=slot)

    def save(self) -> None:
        """Changes what was typed anew; the rest, whom it tells too, stays as it is by now."""
        engine = state.engine()
        engine.set_alert_hook(replace(engine.alert_hook(), **changed(self.typed, self._now)))


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
    form = _HookForm(now)
    for name, field in form.fields.items():
        label, most, meaning = _THRESHOLDS[name], _MOST[name], _MEANINGS[name]
        st.number_input(label, 1, most, field.begins, step=1, key=field.key, help=meaning)
    told = "a command" if now.command else "a webhook" if now.webhook else "nobody yet"
    held = fmt.size(form.typed.slot_bytes)
    st.caption(f"{held} of log. Alerts go to {told}; `highwater alerts hook` says to whom.")
    last_problem(_NOT_HOOKED)
    st.button(
        "Save",
        type="primary",
        icon=":material/save:",
        key="u_save_hook",
        on_click=_save_hook,
        args=(form,),
        **permitted("set_alert_hook", disabled=form.typed == now),
    )


def _save_hook(form: _HookForm) -> None:
    _saved(_NOT_HOOKED, form.save)
