"""Log pieces made by hand, and the rows that the reference wants of them, computed row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from engine.lake.tables import arrow_type
from engine.model.capture_instance import CapturedColumn, CaptureInstance, IndexColumn
from engine.model.lsn import Lsn
from engine.model.mask import full_mask, mask_of
from engine.sources.base import LogColumn, LogPiece, LogTransaction, Relation, RelationChanges

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE = 4711


@dataclass(frozen=True)
class Change:
    """One change of one row: ``old`` None for an insert, ``new`` None for a delete."""

    transaction: int
    command: int
    old: dict | None
    new: dict | None


def instance(columns: dict[str, str], key: Sequence[str] = (), name: str = "dbo_t") -> CaptureInstance:
    return CaptureInstance(
        object_id=1001,
        database="db",
        capture_instance=name,
        source_schema="dbo",
        source_table="t",
        source_object_id=SOURCE,
        start_lsn=Lsn.at(0),
        supports_net_changes=bool(key),
        role_name=None,
        index_name="t_pkey" if key else None,
        filegroup_name=None,
        create_date=EPOCH,
        columns=tuple(
            CapturedColumn(column, number, "a type", number, False, lake_type)
            for number, (column, lake_type) in enumerate(columns.items(), 1)
        ),
        index_columns=tuple(IndexColumn(column, number, number) for number, column in enumerate(key, 1)),
    )


def transactions(commits: Sequence[int]) -> tuple[LogTransaction, ...]:
    return tuple(
        LogTransaction(Lsn.at(commit), Lsn.at(commit - 5), None, EPOCH + timedelta(seconds=commit), b"\x07")
        for commit in commits
    )


def piece(commits: Sequence[int], changes: Sequence[Change], columns: dict[str, str]) -> LogPiece:
    """A piece of one relation whose columns are ``columns`` (name to lake type)."""
    images, operation, owner = [], [], []
    for change in changes:
        both = change.old is not None and change.new is not None
        for image, code in ((change.old, 3 if both else 1), (change.new, 4 if both else 2)):
            if image is not None:
                images.append(image)
                operation.append(code)
                owner.append(change)
    schema = pa.schema([(name, arrow_type(lake_type)) for name, lake_type in columns.items()])
    batch = pa.RecordBatch.from_pylist(images, schema=schema)
    relation = Relation(
        SOURCE, "dbo", "t", tuple(LogColumn(name, "a type", lake) for name, lake in columns.items())
    )
    relation_changes = RelationChanges(
        relation=relation,
        operation=np.array(operation, np.uint8),
        transaction=np.array([change.transaction for change in owner], np.int32),
        command=np.array([change.command for change in owner], np.int32),
        position=np.array([position_of(commits, change) for change in owner], np.uint64),
        counter=np.zeros(len(owner), np.uint16),
        images=batch,
    )
    return LogPiece(transactions(commits), (relation_changes,), (), False, len(changes))


def position_of(commits: Sequence[int], change: Change) -> int:
    return commits[change.transaction] - 100 + change.command


def naive_rows(
    commits: Sequence[int], changes: Sequence[Change], instance: CaptureInstance, after: int
) -> list[tuple]:
    """(start_lsn, end_lsn, seqval, operation, mask, captured values…, command_id) of each row, in order."""
    rows = []
    names, count = instance.column_names, len(instance.columns)
    for change in changes:
        commit = commits[change.transaction]
        if commit <= after:
            continue
        ordinals = (
            [
                n
                for n, name in enumerate(names, 1)
                if same(change.old.get(name), change.new.get(name)) is False
            ]
            if change.old is not None and change.new is not None
            else list(range(1, count + 1))
        )
        moved = {names[ordinal - 1] for ordinal in ordinals} & set(instance.index_column_names)
        is_update = change.old is not None and change.new is not None
        codes = (3, 4) if is_update and not moved else (1, 2)
        mask = mask_of(ordinals, count) if is_update and not moved else full_mask(count)
        if is_update and not ordinals:
            continue
        for image, code in zip((change.old, change.new), codes, strict=True):
            if image is not None:
                values = [image.get(name) for name in names]
                seqval = str(Lsn.at(position_of(commits, change)))
                rows.append((str(Lsn.at(commit)), None, seqval, code, mask, *values, change.command))
    return rows


def same(old: object, new: object) -> bool:
    return repr(old) == repr(new)
