"""One change in full: its diff, the bits of its mask, its LSNs, its transaction."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import reading, state
from dashboard.changes import Change
from dashboard.components.operation_box import operation_failure, operation_progress
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
        diff, mask, where, transaction = st.tabs(
            ["Diff", "Mask", "Where", "Transaction"], key="drawer_tab", on_change="rerun"
        )
        with diff:
            _diff(change, instance)
        with mask:
            _mask(change, instance)
        with where:
            _where(change)
        if transaction.open:
            with transaction:
                _transaction(view, change)


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


def _where(change: Change) -> None:
    now = state.now()
    st.markdown(f"Committed {fmt.moment_and_age(change.commit_time, now)}")
    st.markdown("Commit LSN `__$start_lsn`")
    st.code(change.start_lsn, language=None)
    if change.seqval:
        st.markdown("Sequence `__$seqval`")
        st.code(change.seqval, language=None)


def _transaction(view: DatabaseView, change: Change) -> None:
    key = f"transaction:{view.name}:{change.start_lsn}"
    operation = state.operations().get(key)
    if operation is None:
        commit = Lsn.parse(change.start_lsn)
        operation = state.operations().submit(
            key,
            "Reading the transaction",
            lambda work: reading.read_transaction(state.engine(), view.instances, commit, work),
        )

    def body() -> None:
        assert operation is not None
        if operation.is_active:
            operation_progress(operation, "transaction")
        elif not operation_failure(operation):
            _transaction_rows(operation.result, change)

    st.fragment(body, run_every=0.5 if operation.is_active else None)()


def _transaction_rows(changes: tuple[Change, ...], shown: Change) -> None:
    rows = [
        {
            "": "▸" if change.seqval == shown.seqval and change.operation == shown.operation else "",
            "operation": change.look.label,
            "capture instance": change.capture_instance,
            "change": change.summary(tuple(change.values)),
        }
        for change in reversed(changes)
    ]
    st.caption(f"{fmt.plural(len(rows), 'change')} in engine order, all capture instances")
    frame = pd.DataFrame(rows)

    def tint(row: pd.Series) -> list[str]:
        colour = list(reversed(changes))[int(str(row.name))].look.colour
        return [f"background-color: {colour}44" if name == "operation" else "" for name in frame.columns]

    widths = {"": 30, "operation": 80, "capture instance": 130}
    st.dataframe(
        frame.style.apply(tint, axis=1),
        hide_index=True,
        column_config={name: st.column_config.TextColumn(width=width) for name, width in widths.items()},
        alt="Changes of this transaction",
    )
