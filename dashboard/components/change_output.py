"""An answer of the explorer for elsewhere: as a statement, a link or a file."""

from __future__ import annotations

from functools import partial
from weakref import finalize

import streamlit as st

from dashboard import exports, reading, state, statements
from dashboard import format as fmt
from dashboard.change_links import address, of_page
from dashboard.components.change_run import Run
from dashboard.components.operation_box import operation_failure, operation_progress
from dashboard.components.statement_box import statement_box
from dashboard.downloads import Shelf
from dashboard.operations import Operation as Work
from dashboard.reading import ChangePage, ChangeQuery
from engine.errors import ExportsOff
from engine.model.lsn import Lsn


def copy_as(query: ChangeQuery, page: ChangePage) -> None:
    """The query as T-SQL, as PySpark and as a link."""
    statement_box(_statement(query, page.from_lsn, page.to_lsn))
    st.markdown("Link to exactly these rows")
    st.code(address(st.context.url or "", of_page(query, page)), language=None, wrap_lines=True)


def _statement(query: ChangeQuery, from_lsn: Lsn, to_lsn: Lsn) -> statements.Statement:
    return statements.get_changes(
        query.database,
        query.instance.capture_instance,
        query.net,
        str(from_lsn),
        str(to_lsn),
        query.row_filter_option,
    )


def download_box(query: ChangeQuery, page: ChangePage, run: Run) -> None:
    """The whole query as a file: made in the background, with its progress, then to be saved."""
    if not state.snapshot().settings.exports:
        st.info(str(ExportsOff()), icon=":material/block:")
        return
    st.caption("The whole query, not only this page, with its metadata columns.")
    ready, operation = run.shelf.ready, run.download
    if operation is not None and operation.is_active:
        operation_progress(operation, "c_download")
        return
    if operation is not None:
        operation_failure(operation)
    if ready is not None and ready.question == run.question:
        st.link_button(
            f"Save {ready.name}",
            _address(run.shelf),
            icon=":material/download:",
            type="primary",
            width="stretch",
        )
        st.caption(f"{fmt.plural(ready.rows, 'row')}, {fmt.size(ready.size)}")
    for wanted in exports.FORMATS:
        st.button(
            f"Prepare {wanted.label}",
            key=f"c_prepare_{wanted.extension}",
            on_click=_prepare,
            args=(query, page.from_lsn, page.to_lsn, run, wanted),
            width="stretch",
        )


def _prepare(query: ChangeQuery, from_lsn: Lsn, to_lsn: Lsn, run: Run, wanted: exports.ExportFormat) -> None:
    """Writes the file in the background; the tab that is closed meanwhile wants it no more."""
    engine, shelf, question = state.engine(), run.shelf, run.question
    begin = partial(engine.begin_export, query.database, _statement(query, from_lsn, to_lsn).tsql)
    name = query.instance.capture_instance

    def write(work: Work) -> None:
        read = partial(reading.whole, engine, query, from_lsn, to_lsn, work)
        shelf.prepare(question, name, wanted, read, begin, work)

    title = f"Preparing {name}.{wanted.extension}"
    run.download = state.operations().submit(f"download:{question}", title, write)
    finalize(run, run.download.cancel)


def _address(shelf: Shelf) -> str:
    """Where the tab's file is fetched."""
    base = str(st.get_option("server.baseUrlPath")).strip("/")
    return (f"/{base}" if base else "") + f"/api/download/{shelf.token}"
