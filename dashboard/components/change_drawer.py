"""One change in full: its diff, the bits of its mask, its LSNs, its transaction, its row before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import reading, state
from dashboard.change_links import RANGE, address, of_change, of_transaction
from dashboard.changes import Change
from dashboard.charts.transaction import transaction_chart
from dashboard.components.change_table import operations_tinted
from dashboard.components.live_plot import live_plot
from dashboard.components.operation_box import is_answered
from dashboard.components.problem import escaped
from dashboard.components.table_as_of import table_as_of
from dashboard.going import UNFILTERED
from dashboard.reading import RowHistory, Transaction
from dashboard.sessions import captured_at
from dashboard.snapshot import DatabaseView
from dashboard.theme import table_height
from engine.model.capture_instance import CaptureInstance
from engine.model.lsn import Lsn


def change_drawer(
    view: DatabaseView, instance: CaptureInstance, change: Change, move: Callable[[int], None]
) -> None:
    """The drawer right of the table; ``move`` goes to the previous (-1) or next (+1) change."""
    with st.container(border=True, gap="small", key="drawer"):
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            st.markdown(f"## {change.look.label}", anchors=False, width="content")
            st.space("stretch")
            st.button("Newer", shortcut="J", key="drawer_newer", on_click=move, args=(-1,), type="tertiary")
            st.button("Older", shortcut="K", key="drawer_older", on_click=move, args=(1,), type="tertiary")
        key = change.key(instance.index_column_names)
        st.markdown(f"`{key}`" if key else "no row identifier")
        diff, mask, where, transaction, row, table = st.tabs(
            ["Diff", "Mask", "Where", "Transaction", "Row", "As of"], key="drawer_tab", on_change="rerun"
        )
        with diff:
            _diff(change, instance)
        with mask:
            _mask(change, instance)
        with where:
            _where(view, change)
        if transaction.open:
            with transaction:
                _transaction(view, change)
        if row.open:
            with row:
                _row(view, instance, change)
        if table.open:
            with table:
                table_as_of(view, instance, change)


def _diff(change: Change, instance: CaptureInstance) -> None:
    names = instance.column_names
    if not change.is_update:
        side = "value" if change.old is None else "last value"
        st.table(
            [{"column": name, side: change.cell(name)} for name in names],
            border="horizontal",
            hide_index=True,
        )
        return
    changed = [name for name in names if name in change.changed]
    st.table([_pair(change, name) for name in changed], border="horizontal", hide_index=True)
    if change.old is None and change.mask is not None:
        st.caption("Old values come with the row filter option `all update old`.")
    same = [name for name in names if name not in change.changed]
    if same:
        with st.expander(f"{fmt.plural(len(same), 'unchanged column')}", type="compact"):
            st.table(
                [{"column": name, "value": change.cell(name)} for name in same],
                border="horizontal",
                hide_index=True,
            )


def _pair(change: Change, name: str) -> dict[str, str]:
    old = fmt.DASH if change.old is None else fmt.cell(change.old.get(name))
    new = fmt.DASH if change.new is None else fmt.cell(change.new.get(name))
    return {"column": name, "old": old, "new": f"**{new}**"}


def _mask(change: Change, instance: CaptureInstance) -> None:
    if change.mask is None:
        st.caption("This query returns no mask (NULL).")
        return
    st.code(fmt.binary(change.mask), language=None)
    rows = [
        {"ordinal": number, "column": name, "bit": "■ 1" if name in change.changed else "□ 0"}
        for number, name in enumerate(instance.column_names, 1)
    ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        height=table_height(len(rows), 8),
        alt="Bits of the update mask",
    )
    if not change.is_update:
        st.caption("Inserts and deletes have all bits set by rule.")


def _where(view: DatabaseView, change: Change) -> None:
    now = state.now()
    st.markdown(f"Committed {fmt.moment_and_age(change.commit_time, now)}")
    st.markdown("Commit LSN `__$start_lsn`")
    st.code(change.start_lsn, language=None)
    if change.seqval:
        st.markdown("Sequence `__$seqval`")
        st.code(change.seqval, language=None)
        st.markdown("Link to this change")
        st.code(_link(of_change(change, view.name)), language=None, wrap_lines=True)


def _link(parameters: Mapping[str, object]) -> str:
    return address(st.context.url or "", parameters)


def _transaction(view: DatabaseView, change: Change) -> None:
    key = f"transaction:{view.name}:{change.start_lsn}"
    operation = state.operations().get(key)
    if operation is None:
        commit, engine = Lsn.parse(change.start_lsn), state.engine()
        operation = state.operations().submit(
            key,
            "Reading the transaction",
            lambda work: reading.read_transaction(engine, view.instances, commit, work),
        )
    if is_answered(operation, "transaction"):
        _transaction_times(view, change)
        _transaction_rows(view, operation.result, change)


def _transaction_times(view: DatabaseView, change: Change) -> None:
    """When it was committed and when captured: in between, nobody could ask for it."""
    viewer, now, committed = state.viewer(), state.now(), change.commit_time
    captured = captured_at(view.history, change.start_lsn)
    parts = []
    if committed is not None:
        parts.append(f"committed {fmt.clock(committed, now, viewer.zone, viewer.local)}")
    if committed is not None and captured is not None:
        later = max(0.0, round((captured - committed).total_seconds(), 3))  # two clocks may differ
        clock = fmt.clock(captured, now, viewer.zone, viewer.local)
        parts.append(f"captured {clock} (+{fmt.duration(later)})")
    st.caption(" → ".join(parts))


def _transaction_rows(view: DatabaseView, found: Transaction, shown: Change) -> None:
    changes = found.changes
    places = [
        place
        for place, each in enumerate(changes)
        if each.place == shown.place and each.operation == shown.operation
    ]
    live_plot(transaction_chart(changes, places[0] if places else None), "drawer_transaction")
    if found.counts:
        _beyond(view, found, shown)
    else:
        st.caption(f"{fmt.plural(len(changes), 'change')} in engine order, all capture instances")
    rows = [
        {
            "": "▸" if place in places else "",
            "operation": change.look.label,
            "capture instance": change.capture_instance,
            "change": change.summary(tuple(change.values)),
        }
        for place, change in enumerate(changes)
    ]
    _tinted(rows, changes, {"": 30, "operation": 80, "capture instance": 130}, "Changes of this transaction")


def _beyond(view: DatabaseView, found: Transaction, shown: Change) -> None:
    """How much a large transaction changed where, with a link to all of it."""
    st.caption(
        f"The last {fmt.number(len(found.changes))} of {fmt.plural(sum(found.counts.values()), 'change')} "
        "in engine order, all capture instances. All of them, by capture instance:"
    )
    for name, count in sorted(found.counts.items(), key=lambda each: -each[1]):
        target = _link({"db": view.name, **of_transaction(name, shown.start_lsn)})
        st.markdown(f"[{escaped(name)}]({target}): {fmt.plural(count, 'change')}")


def _row(view: DatabaseView, instance: CaptureInstance, change: Change) -> None:
    """What happened to the same row, and what it was like from each change on."""
    key = change.key_values(instance.index_column_names)
    if not key:
        st.caption("The capture instance has no columns that identify a row.")
        return
    row = change.key(instance.index_column_names)
    told = f"row:{view.name}:{instance.object_id}:{view.watermarks.high}:{row}"
    engine = state.engine()
    operation = state.operations().get(told) or state.operations().submit(
        told, "Reading the row's changes", lambda work: reading.read_row(engine, instance, key, work)
    )
    if is_answered(operation, "row"):
        _row_changes(instance, operation.result, change)


def _row_changes(instance: CaptureInstance, found: RowHistory, shown: Change) -> None:
    viewer, now, changes = state.viewer(), state.now(), found.changes
    rows = [
        {
            "": "▸" if change.place == shown.place else "",
            "operation": change.look.label,
            "commit time": fmt.clock(change.commit_time, now, viewer.zone, viewer.local),
            "change": change.summary(instance.column_names),
            "LSN": fmt.lsn_short(change.start_lsn),
        }
        for change in changes
    ]
    count = fmt.plural(len(rows), "change")
    first = f"The newest {count} of this row: it has more" if found.has_more else f"{count} of this row"
    st.caption(f"{first} in the validity interval, newest first")
    _tinted(rows, changes, {"": 30, "operation": 80, "commit time": 104}, "Changes of this row")
    st.button(
        "Show only this row",
        key="drawer_only",
        icon=":material/filter_alt:",
        type="tertiary",
        on_click=_show_only,
        args=(shown.key(instance.index_column_names),),
    )


def _show_only(key: str) -> None:
    """All that is kept of the row, page by page."""
    st.session_state.update({**UNFILTERED, "c_key": key, "c_by": RANGE, "c_from": "", "c_to": ""})


def _tinted(
    rows: Sequence[Mapping[str, str]], changes: Sequence[Change], widths: Mapping[str, int], alt: str
) -> None:
    """A table whose operations have their colour."""
    st.dataframe(
        operations_tinted(pd.DataFrame(list(rows)), changes),
        hide_index=True,
        column_config={name: st.column_config.TextColumn(width=width) for name, width in widths.items()},
        height=table_height(len(rows), 12),
        alt=alt,
    )
