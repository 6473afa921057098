"""What the page Schema shows: DDL of the database or one table, its instances, and the wizard."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import state
from dashboard.components.ddl_list import ddl_drawer, ddl_list
from dashboard.components.instance_columns import instance_columns
from dashboard.components.migration_wizard import migration_wizard
from dashboard.components.problem import escaped, problem_box
from dashboard.components.validity_card import validity_card
from dashboard.migration import Migration, migration, tables_of
from dashboard.snapshot import DatabaseView
from engine.errors import CdcError
from engine.model.capture_instance import CaptureInstance
from engine.model.ddl_history import SchemaChange

EVERY = "every table"


def schema_page(view: DatabaseView) -> None:
    """All of it, for the table in the address, or that of the selected DDL."""
    try:
        changes = state.engine().schema_changes(view.name)
    except CdcError as error:
        problem_box(error, "reading the DDL history")
        return
    tables = tables_of(view.instances)
    at = {name: migration(mine, changes, view.watermarks.high) for name, mine in tables.items()}
    wanted = _table(tables, at)
    shown = [each for each in changes if wanted is None or _of(each) == wanted]
    chosen = ddl_list(view, shown)
    table = wanted or (_of(chosen) if chosen is not None else None) or _waiting(at)
    if table not in tables:
        return
    if at[table].is_needed:
        migration_wizard(view, at[table], changes)
    left, right = st.columns(2)
    with left:
        if chosen is not None:
            ddl_drawer(view, chosen)
        else:
            instance_columns(tables[table])
    with right:
        names = {each.capture_instance for each in tables[table]}
        validity_card(view, "s_lanes", "Instances", names)
        if chosen is not None:
            instance_columns(tables[table])
    if not at[table].is_needed:
        migration_wizard(view, at[table], changes)


def _of(change: SchemaChange) -> str:
    return f"{change.history.source_schema}.{change.history.source_table}"


def _waiting(at: dict[str, Migration]) -> str:
    """A table that something is to be done with, else the first."""
    return next((name for name, each in at.items() if each.is_needed), next(iter(at)))


def _table(tables: dict[str, list[CaptureInstance]], at: dict[str, Migration]) -> str | None:
    """The table in the address; None for every table."""
    options = [EVERY, *tables]
    wanted = st.session_state.get("s_table") or st.query_params.get("s_table")
    if wanted not in (None, *options):
        st.info(f"{escaped(str(wanted))} is not captured: every table is shown.", icon=":material/info:")
        st.session_state.pop("s_table", None)
        st.query_params.pop("s_table", None)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox("Table", options, key="s_table", bind="query-params", width=300)
        _needed([table for table, each in at.items() if each.is_needed])
    return None if name == EVERY else name


def _needed(tables: Sequence[str]) -> None:
    if tables:
        more = f" and {len(tables) - 3} more" if len(tables) > 3 else ""
        text = f"Not as the source is, or on the way: **{escaped(', '.join(tables[:3]))}**{more}"
        st.markdown(f":orange[:material/warning:] {text}", width="content")
    else:
        st.markdown(
            ":green[:material/check_circle:] Every instance captures its table as it is", width="content"
        )
