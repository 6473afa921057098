"""Disabling a capture instance: what goes, the statement, and the name typed before it does."""

from __future__ import annotations

import streamlit as st

from dashboard import format as fmt
from dashboard import state, statements
from dashboard.components.problem import problem_box
from dashboard.components.statement_box import statement_box
from dashboard.dialogs import close_dialog, dialog_button
from engine.errors import CdcError
from engine.model.capture_instance import CaptureInstance


@st.dialog("Disable a capture instance", width="medium", icon=":material/delete:", on_dismiss=close_dialog)
def disable_dialog(instance: CaptureInstance, is_last: bool) -> None:
    """Names what is lost; the button works once the instance's name is typed."""
    name = instance.capture_instance
    st.markdown(
        f"**{name}** of `{instance.source_schema}.{instance.source_table}`, "
        f"captured since {fmt.moment_and_age(instance.create_date, state.now())}. This deletes\n"
        f"- the change table `cdc.{instance.change_table}` with all its rows\n"
        f"- its query functions: whoever reads them gets an error from then on\n"
        + ("- the capture job, since this is the last instance of the database\n" if is_last else "")
        + "\nThe source table itself keeps all its data."
    )
    statement_box(
        statements.disable_table(instance.database, instance.source_schema, instance.source_table, name)
    )
    typed = st.text_input(f"Type **{name}** to confirm", key="disable_name", live=True, autocomplete="off")
    if dialog_button("Disable", key="disable_confirm", icon=":material/delete:", disabled=typed != name):
        _disable(instance)


def _disable(instance: CaptureInstance) -> None:
    try:
        state.engine().disable_table(
            instance.database, instance.source_schema, instance.source_table, instance.capture_instance
        )
    except CdcError as error:
        problem_box(error)
        return
    state.changed()
    close_dialog()
    st.rerun()
