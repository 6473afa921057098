"""Capture instances and change rows as tests write them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from engine.lake.publisher import Append
from engine.lake.tables import Lake, change_table_schema
from engine.model.capture_instance import CapturedColumn, CaptureInstance, IndexColumn
from engine.model.lsn import Lsn
from engine.model.mask import full_mask

Change = tuple[int, int, int, tuple[Any, ...]]
"""Commit position, command id, operation, captured values."""


def capture_instance(
    columns: Mapping[str, str], key: Sequence[str] = (), name: str = "dbo_t", database: str = "shop"
) -> CaptureInstance:
    """An instance over columns of these lake types, valid from position 1."""
    captured = tuple(
        CapturedColumn(column, number, lake_type, number, False, lake_type)
        for number, (column, lake_type) in enumerate(columns.items(), 1)
    )
    identifier = tuple(
        IndexColumn(column, number, list(columns).index(column) + 1) for number, column in enumerate(key, 1)
    )
    return CaptureInstance(
        object_id=1,
        database=database,
        capture_instance=name,
        source_schema="dbo",
        source_table="t",
        source_object_id=1,
        start_lsn=Lsn.at(1),
        supports_net_changes=bool(key),
        role_name=None,
        index_name="pk" if key else None,
        filegroup_name=None,
        create_date=datetime.now(UTC),
        columns=captured,
        index_columns=identifier,
    )


def append_of(
    lake: Lake, instance: CaptureInstance, changes: Sequence[Change], masks: Sequence[bytes] | None = None
) -> Append:
    """The changes, in log order, as rows of the instance's change table."""
    commits = [commit for commit, *_ in changes]
    commands = [command for _, command, *_ in changes]
    columns = [
        [str(Lsn.at(commit)) for commit in commits],
        [None] * len(changes),
        [str(Lsn.at(commit, command)) for commit, command, *_ in changes],
        [operation for _, _, operation, _ in changes],
        masks or [full_mask(len(instance.columns))] * len(changes),
        *([change[3][n] for change in changes] for n in range(len(instance.columns))),
        commands,
    ]
    schema = change_table_schema(instance)
    rows = pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
    )
    path = lake.change_table(instance.database, instance.capture_instance)
    return Append(path, rows, np.array(commits, np.uint64), np.array(commands, np.int32))
