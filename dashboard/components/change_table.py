"""Changes as a table: operation in words with its glyph and colour, an update's old → new in its cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from dashboard import format as fmt
from dashboard import state
from dashboard.changes import Change
from dashboard.components.row_table import row_table
from dashboard.format import Zone
from dashboard.theme import UPDATE
from engine.model.capture_instance import CaptureInstance

OPERATION, COMMIT, LSN, CHANGED = "operation", "commit time", "LSN", "changed"


def change_table(
    changes: Sequence[Change], instance: CaptureInstance, key: str, selected: int | None
) -> int | None:
    """One row a change; returns the index of the selected one. selected: at first."""
    frame = pd.DataFrame([_cells(change, instance) for change in changes])
    is_today = frame[COMMIT].str.len().max() <= len("09:14:03.120")
    config: dict[str, Any] = {
        OPERATION: st.column_config.TextColumn(width=104),
        COMMIT: st.column_config.TextColumn(width=104 if is_today else 170),
        LSN: st.column_config.TextColumn(width=100, help="Short form; the full LSN is in the drawer."),
        CHANGED: st.column_config.TextColumn(width=170, help="Columns whose bit an update's mask has."),
    }
    alt = f"{len(changes)} changes of {instance.capture_instance}, newest first"
    return row_table(_styled(frame, changes), key, alt, 16, config, selected)


def _cells(change: Change, instance: CaptureInstance) -> dict[str, str]:
    viewer = state.viewer()
    cells = {
        OPERATION: change.look.label,
        COMMIT: fmt.clock(change.commit_time, state.now(), viewer.zone, viewer.local),
        LSN: fmt.lsn_short(change.start_lsn),
        CHANGED: ", ".join(change.changed) if change.is_update else "",
    }
    names = [name if name not in cells else f"{name} " for name in instance.column_names]
    return cells | {name: change.cell(name.rstrip()) for name in names}


def _styled(frame: pd.DataFrame, changes: Sequence[Change]) -> Styler:
    def tint(row: pd.Series) -> list[str]:
        change = changes[int(str(row.name))]
        return [_style(change, str(column), str(row[column])) for column in frame.columns]

    return frame.style.apply(tint, axis=1)


def _style(change: Change, column: str, text: str) -> str:
    if column == OPERATION:
        return f"background-color: {change.look.colour}44"
    if change.is_update:
        changed = column.rstrip() in change.changed
        return f"background-color: {UPDATE.colour}33; font-weight: 600" if changed else ""
    dim = "; color: #7A828C" if text == fmt.NULL else ""
    return f"background-color: {change.look.tint}{dim}"


def operations_tinted(frame: pd.DataFrame, changes: Sequence[Change]) -> Styler:
    """A row for each change, its operation in that one's colour."""

    def tint(row: pd.Series) -> list[str]:
        look = changes[int(str(row.name))].look
        return [f"background-color: {look.colour}44" if name == OPERATION else "" for name in frame.columns]

    return frame.style.apply(tint, axis=1)


def latest_table(changes: Sequence[Change], instances: Sequence[CaptureInstance], key: str) -> int | None:
    """The newest changes of all instances: one line each; returns the index of the selected one."""
    keys = {instance.capture_instance: instance.index_column_names for instance in instances}
    names = {instance.capture_instance: instance.column_names for instance in instances}
    viewer, now = state.viewer(), state.now()
    zone = Zone.UTC if viewer.zone is Zone.RELATIVE else viewer.zone
    frame = pd.DataFrame(
        {
            OPERATION: [change.look.label for change in changes],
            COMMIT: [fmt.clock(change.commit_time, now, zone, viewer.local) for change in changes],
            "capture instance": [change.capture_instance for change in changes],
            "key": [change.key(keys.get(change.capture_instance, ())) for change in changes],
            "change": [change.summary(names.get(change.capture_instance, ())) for change in changes],
        }
    )
    return row_table(
        operations_tinted(frame, changes),
        key,
        "Latest changes of all capture instances, newest first",
        columns={
            OPERATION: st.column_config.TextColumn(width=104),
            COMMIT: st.column_config.TextColumn(width=130),
            "capture instance": st.column_config.TextColumn(width=220),
            "key": st.column_config.TextColumn(width=200),
            "change": st.column_config.TextColumn(width="large"),
        },
        rows=[(each.capture_instance, each.start_lsn, each.seqval, each.operation) for each in changes],
    )
