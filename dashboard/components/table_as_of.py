"""The whole table as it was when a change had been committed: read by a click, for it reads the source."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dashboard import as_of, exports, state
from dashboard import format as fmt
from dashboard.as_of import RowsAsOf
from dashboard.changes import Change
from dashboard.components.operation_box import is_answered
from dashboard.snapshot import DatabaseView
from dashboard.theme import table_height
from engine.engine import Engine
from engine.errors import ExportsOff
from engine.model.capture_instance import CaptureInstance
from engine.model.lsn import Lsn

_KEY = "as_of_key"
_HELP = (
    "The table is read at the source as it is now, and what was captured after this LSN is taken back. It "
    "takes as long as reading the table does."
)


def table_as_of(view: DatabaseView, instance: CaptureInstance, change: Change) -> None:
    """The form and, once it was asked for, the rows."""
    if not instance.index_columns:
        st.caption("The capture instance has no columns that identify a row.")
        return
    lsn = Lsn.parse(change.start_lsn)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        st.text_input("Key", key=_KEY, placeholder="value or column=value")
        st.button(
            "Table as of this LSN",
            key="as_of_read",
            icon=":material/history:",
            help=_HELP,
            on_click=_read,
            args=(view.name, instance, lsn),
        )
    operation = state.operations().get(_question(view.name, instance, lsn))
    if operation is not None and is_answered(operation, "as_of"):
        _rows(instance, operation.result)


def _question(database: str, instance: CaptureInstance, lsn: Lsn) -> str:
    """What the past was does not change: an answer holds as long as it is remembered."""
    return f"as_of:{database}:{instance.object_id}:{lsn}:{_asked_key()}"


def _asked_key() -> str:
    return str(st.session_state.get(_KEY) or "").strip()


def _read(database: str, instance: CaptureInstance, lsn: Lsn) -> None:
    engine, key = state.engine(), _asked_key()
    state.operations().submit(
        _question(database, instance, lsn),
        "Table as of the LSN",
        lambda work: as_of.read_as_of(engine, instance, lsn, key, work),
    )


def _rows(instance: CaptureInstance, found: RowsAsOf) -> None:
    count = found.rows.num_rows
    if found.has_more:
        st.caption(
            f"The first {fmt.plural(count, 'row')} by key. Filter by a key, or print all of them with:"
        )
        st.code(as_of.command(instance, found.lsn), language="sh", wrap_lines=True)
    else:
        st.caption(f"{fmt.plural(count, 'row')} as of `{fmt.lsn_short(str(found.lsn))}`, by key")
    cells = [column.to_pylist() for column in found.rows.columns]
    shown = [
        dict(zip(instance.column_names, map(fmt.cell, row), strict=True)) for row in zip(*cells, strict=True)
    ]
    st.dataframe(
        shown, hide_index=True, height=table_height(count, 12), alt="Rows of the table as of the LSN"
    )
    _download(instance, found)


def _download(instance: CaptureInstance, found: RowsAsOf) -> None:
    if not state.snapshot().settings.exports:
        st.info(str(ExportsOff()), icon=":material/block:")
        return
    engine = state.engine()
    with st.container(horizontal=True, gap="xsmall"):
        for wanted in exports.FORMATS:
            st.download_button(
                wanted.label,
                data=partial(_export, engine, instance, found, wanted),
                file_name=f"{instance.capture_instance}_{found.lsn}.{wanted.extension}",
                mime=wanted.mime,
                on_click="ignore",
                icon=":material/download:",
                key=f"as_of_download_{wanted.extension}",
            )


def _export(
    engine: Engine, instance: CaptureInstance, found: RowsAsOf, wanted: exports.ExportFormat
) -> bytes:
    engine.begin_export(instance.database, as_of.command(instance, found.lsn))
    return exports.export(found.rows, wanted)
