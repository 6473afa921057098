"""Disabling a capture instance: what goes, who reads it, the statement, and the name typed before it does."""

from __future__ import annotations

import streamlit as st

from dashboard import format as fmt
from dashboard import state, statements
from dashboard.components.dialog_work import dialog_work
from dashboard.components.problem import escaped
from dashboard.components.statement_box import statement_box
from dashboard.components.table_size import size_text
from dashboard.dialogs import close_dialog
from dashboard.migration import clients_of
from dashboard.snapshot import DatabaseView
from engine.engine import Engine
from engine.model.capture_instance import CaptureInstance
from engine.model.client import Client


@st.dialog("Disable a capture instance", width="medium", icon=":material/delete:", on_dismiss=close_dialog)
def disable_dialog(instance: CaptureInstance) -> None:
    """Names what is lost and for whom; the button works once the instance's name is typed."""
    view, name = state.snapshot().database(instance.database), instance.capture_instance
    st.markdown(
        f"**{escaped(name)}** of `{instance.source_schema}.{instance.source_table}`, "
        f"captured since {fmt.moment_and_age(instance.create_date, state.now())}. This deletes\n"
        + "".join(f"- {what}\n" for what in _what_goes(view, instance))
        + "\nThe source table itself keeps all its data."
    )
    if view is not None:
        _readers(view, instance)
    statement_box(
        statements.disable_table(instance.database, instance.source_schema, instance.source_table, name)
    )
    typed = st.text_input(
        f"Type **{escaped(name)}** to confirm", key="disable_name", live=True, autocomplete="off"
    )

    def disable(engine: Engine) -> None:
        engine.disable_table(instance.database, instance.source_schema, instance.source_table, name)

    dialog_work(
        "Disable",
        "disable_confirm",
        f"Disabling {name}",
        disable,
        icon=":material/delete:",
        disabled=typed != name,
    )


def _what_goes(view: DatabaseView | None, instance: CaptureInstance) -> list[str]:
    size = "" if view is None else f" (**{size_text(view, instance)}**)"
    kinds = ["all", "net"] if instance.supports_net_changes else ["all"]
    functions = " and ".join(f"`fn_cdc_get_{kind}_changes_{instance.capture_instance}`" for kind in kinds)
    what = [
        f"the change table `cdc.{instance.change_table}` with all its rows{size}",
        f"{functions}: whoever calls them gets an error from then on",
    ]
    clients = () if view is None else clients_of(view.clients, instance)
    if clients:
        what.append(f"the registration of {fmt.plural(len(clients), 'client')}")
    if view is not None and view.jobs and [each.object_id for each in view.instances] == [instance.object_id]:
        jobs = " and ".join(f"the {each.job_type} job `{each.name}`" for each in view.jobs)
        what.append(f"{jobs}, since this is the last instance of the database")
    return what


def _readers(view: DatabaseView, instance: CaptureInstance) -> None:
    """Who is known to read it. Whoever is not registered is known to nobody."""
    role = instance.role_name
    may = f"members of `{role}` may read it" if role else "whoever may read the source columns may read it"
    clients = clients_of(view.clients, instance)
    if not clients:
        st.markdown(f"**Who reads it**: no client is registered; {may}.")
        return
    st.markdown(f"**Who reads it**: {fmt.plural(len(clients), 'registered client')}; {may}.")
    st.table([_reader(each) for each in clients], border="horizontal", hide_index=True)


def _reader(client: Client) -> dict[str, str]:
    return {
        "client": escaped(client.name),
        "has read up to": str(client.acknowledged_lsn or "nothing yet"),
        "heard of": fmt.ago(client.acknowledged_at, state.now()),
    }
