"""The instances of one table side by side: which column each captures."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard.theme import table_height
from engine.model.capture_instance import CaptureInstance


def instance_columns(instances: Sequence[CaptureInstance]) -> None:
    """Every column of the source or of an instance, with its ordinal where it is captured."""
    source = {column.column_id: column for each in instances for column in each.source_columns}
    captured = [{column.column_id: column for column in each.columns} for each in instances]
    numbers = sorted(set(source).union(*captured))
    rows: dict[str, list[str]] = {
        "source column": [source[n].name if n in source else fmt.DASH for n in numbers],
        "type": [source[n].source_type if n in source else "dropped" for n in numbers],
    }
    for each, columns in zip(instances, captured, strict=True):
        rows[each.capture_instance] = [
            f"{columns[n].column_ordinal}  {columns[n].column_name}" if n in columns else fmt.DASH
            for n in numbers
        ]
    with st.container(border=True, gap="xsmall"):
        st.markdown("**Columns**", help="As far as the log was read; an instance keeps a renamed one's name.")
        st.dataframe(
            pd.DataFrame(rows),
            hide_index=True,
            key="s_columns",
            height=table_height(len(numbers), 8),
            alt="Columns of the source and of each capture instance",
        )
