"""Clients that cleanup waits for: who they are, how far behind, what becomes of them; register, ack, drop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import glossary, state, statements
from dashboard.components.dialog_work import dialog_work
from dashboard.components.permission import permitted
from dashboard.components.problem import escaped
from dashboard.components.row_table import row_table
from dashboard.components.statement_box import statement_box
from dashboard.dialogs import close_dialog, open_dialog
from dashboard.snapshot import DatabaseView
from engine.model.client import Client, ClientLag
from engine.model.lsn import Lsn

LIMITS: Mapping[str, timedelta | None] = {
    "7d": timedelta(days=7),
    "1d": timedelta(days=1),
    "3d": timedelta(days=3),
    "30d": timedelta(days=30),
    "never": None,
}
"""How long a client may be silent."""


def client_card(view: DatabaseView, lags: Sequence[ClientLag]) -> None:
    """The registry; ``lags`` are as old as the plan that measured them."""
    with st.container(border=True, gap="xsmall", key="l_clients_card"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("**Clients** that cleanup waits for", help=glossary.CLIENTS, width="content")
            st.space("stretch")
            _button("register_client", "Register", ":material/person_add:", register_dialog, view.name)
        if not view.clients:
            st.caption("None is registered: cleanup waits for nobody, whoever reads the changes.")
            return
        chosen = _table(view, {_name(lag.client): lag for lag in lags})
        with st.container(horizontal=True, vertical_alignment="center"):
            if chosen is None:
                st.caption("Select a client to acknowledge for it, or to drop it.")
                return
            st.caption(f"**{escaped(chosen.name)}** of {escaped(chosen.capture_instance)}", width="content")
            _button("acknowledge", "Acknowledge", ":material/done_all:", acknowledge_dialog, chosen)
            _button("drop_client", "Drop", ":material/person_remove:", drop_dialog, chosen)


def _button(method: str, label: str, icon: str, dialog: object, argument: object) -> None:
    st.button(
        label,
        icon=icon,
        key=f"l_client_{label.lower()}",
        on_click=open_dialog,
        args=(dialog, argument),
        **permitted(method, disabled=state.snapshot().failure is not None),
    )


def _name(client: Client) -> tuple[str, str]:
    return client.capture_instance, client.name


def _table(view: DatabaseView, lags: Mapping[tuple[str, str], ClientLag]) -> Client | None:
    now, high = state.now(), view.watermarks.high
    clients = view.clients
    measured = [lags.get(_name(client)) for client in clients]
    frame = pd.DataFrame(
        {
            "state": [_state(client, now) for client in clients],
            "client": [client.name for client in clients],
            "capture instance": [client.capture_instance for client in clients],
            "acknowledged": [_lsn(client) for client in clients],
            "log behind": [_behind(client, high) for client in clients],
            "rows behind": [_rows(lag) for lag in measured],
            "time behind": [_seconds(lag) for lag in measured],
            "heard of": [fmt.ago(client.acknowledged_at, now) for client in clients],
            "dropped": [_moment(client.expires_at, now, "never") for client in clients],
            "cleanup waits from": [
                _waits(client, lag, now) for client, lag in zip(clients, measured, strict=True)
            ],
        }
    )
    row = row_table(
        frame,
        "l_clients",
        "Clients that cleanup waits for",
        8,
        {
            "acknowledged": st.column_config.Column(help="It has every change up to here, itself included."),
            "log behind": st.column_config.Column(help="Bytes of the source's log up to the high watermark."),
            "rows behind": st.column_config.Column(
                help="Of the change table; measured with the preview above."
            ),
            "dropped": st.column_config.Column(help="Unless it is heard of before."),
            "cleanup waits from": st.column_config.Column(help="If it goes on at its pace."),
        },
        rows=[(view.name, *_name(client)) for client in clients],
    )
    return None if row is None else clients[row]


def _state(client: Client, now: datetime) -> str:
    if client.is_expired(now):
        return "! silent"
    return "‖ held" if client.holds_cleanup else "✓ ok"


def _lsn(client: Client) -> str:
    return "nothing yet" if client.acknowledged_lsn is None else fmt.lsn_long(client.acknowledged_lsn)


def _behind(client: Client, high: Lsn | None) -> str:
    if client.acknowledged_lsn is None or high is None:
        return fmt.DASH
    return fmt.size(max(0, high.position - client.acknowledged_lsn.position))


def _rows(lag: ClientLag | None) -> str:
    return fmt.DASH if lag is None or lag.lag_rows is None else fmt.number(lag.lag_rows)


def _seconds(lag: ClientLag | None) -> str:
    return fmt.DASH if lag is None or lag.lag_seconds is None else fmt.duration(round(lag.lag_seconds))


def _moment(value: datetime | None, now: datetime, nothing: str) -> str:
    return nothing if value is None else fmt.ago(value, now)


def _waits(client: Client, lag: ClientLag | None, now: datetime) -> str:
    if client.held_since is not None:
        return f"waits since {fmt.ago(client.held_since, now)}"
    return fmt.DASH if lag is None else _moment(lag.forecast.passed_at, now, "not at its pace")


@st.dialog("Register a client", width="medium", icon=":material/person_add:", on_dismiss=close_dialog)
def register_dialog(database: str) -> None:
    """A consumer that cleanup shall wait for."""
    view = state.snapshot().database(database)
    names = [each.capture_instance for each in view.instances] if view is not None else []
    name = st.text_input(
        "Name", key="l_register_name", live=True, autocomplete="off", placeholder="warehouse"
    )
    instance = st.selectbox("Capture instance", names, key="l_register_instance")
    limit = st.selectbox(
        "Dropped when silent for",
        list(LIMITS),
        key="l_register_limit",
        help="By the next cleanup, with an error row.",
    )
    st.caption("It begins at the low watermark. A client of several instances is registered with each.")
    statement_box(
        statements.register_client(database, name or "NAME", instance or "INSTANCE", LIMITS[limit or "7d"])
    )
    dialog_work(
        "Register",
        "l_register_confirm",
        f"Registering client {name}",
        lambda engine: engine.register_client(database, name, str(instance), LIMITS[limit or "7d"]),
        disabled=not name or not instance,
    )


@st.dialog("Acknowledge", width="medium", icon=":material/done_all:", on_dismiss=close_dialog)
def acknowledge_dialog(client: Client) -> None:
    """Says in the client's name how far it has come."""
    view = state.snapshot().database(client.database)
    high = None if view is None else view.watermarks.high
    st.markdown(
        f"**{escaped(client.name)}** has every change of {escaped(client.capture_instance)} up to this LSN: "
        "cleanup may take what is below. It never goes back."
    )
    typed = st.text_input(
        "LSN",
        key="l_ack_lsn",
        live=True,
        autocomplete="off",
        placeholder=str(high or client.acknowledged_lsn or ""),
        help=f"From `{_lsn(client)}` to the high watermark, `{fmt.lsn_long(high)}`.",
    )
    lsn = _parsed(typed)
    statement_box(
        statements.acknowledge(client.database, client.name, client.capture_instance, str(lsn or "0x…"))
    )
    dialog_work(
        "Acknowledge",
        "l_ack_confirm",
        f"Acknowledging for client {client.name}",
        lambda engine: engine.acknowledge(client.database, client.name, client.capture_instance, lsn),
        disabled=lsn is None,
    )


def _parsed(text: str) -> Lsn | None:
    if not text.strip():
        return None
    try:
        return Lsn.parse(text)
    except ValueError as error:
        st.caption(f":red[{escaped(str(error))}]")
        return None


@st.dialog("Drop a client", width="medium", icon=":material/person_remove:", on_dismiss=close_dialog)
def drop_dialog(client: Client) -> None:
    """Cleanup waits for it no more; its name is typed first."""
    st.markdown(
        f"Cleanup of {escaped(client.capture_instance)} no longer waits for **{escaped(client.name)}**: "
        "changes "
        "that it has not read may go with the next run."
    )
    statement_box(statements.drop_client(client.database, client.name, client.capture_instance))
    typed = st.text_input(
        f"Type **{escaped(client.name)}** to confirm", key="l_drop_name", live=True, autocomplete="off"
    )
    dialog_work(
        "Drop",
        "l_drop_confirm",
        f"Dropping client {client.name}",
        lambda engine: engine.drop_client(client.database, client.name, client.capture_instance),
        disabled=typed != client.name,
    )
