"""What sys.sp_cdc_enable_table allows (reference/procedures.md, 2): pure rules over a source table.

The order of the original's checks is not documented; here parameters come first, then names, the
index, the columns.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.errors import (
    CaptureInstanceExists,
    CaptureInstanceNameInvalid,
    CaptureInstanceNameTooLong,
    CdcError,
    ColumnListUnmappable,
    ColumnMissing,
    FilegroupInvalid,
    IdentifierNotCaptured,
    IndexDisabled,
    IndexMissing,
    IndexNotUnique,
    IndexNullable,
    NoRowIdentifier,
    NotABit,
    ParameterEmpty,
    ReservedColumnName,
    RoleNameEmpty,
    RoleNameInvalid,
    SwitchBlocked,
    SwitchIgnored,
    SwitchNotBlocked,
    SwitchUntracked,
    TableInCdcSchema,
    TooManyColumns,
    TooManyIndexColumns,
    TooManyInstances,
)
from engine.model.capture_instance import CapturedColumn, CaptureInstance, IndexColumn
from engine.model.change import LEADING_COLUMNS
from engine.procedures.column_list import parse_column_list
from engine.sources.base import SourceIndex, SourceTable

PRIMARY = "PRIMARY"
"""The filegroup that every database has."""
MAX_NAME = 100
MAX_ROLE_NAME = 128
MAX_INSTANCES = 2
MAX_COLUMNS = 1024
"""Bits of the update mask, varbinary(128). The original's own limit is not documented."""
MAX_NET_INDEX_COLUMNS = 14


@dataclass(frozen=True, slots=True)
class EnableRequest:
    """The parameters of sp_cdc_enable_table as given; None is NULL or omitted."""

    source_schema: str
    source_name: str
    role_name: str | None
    capture_instance: str | None = None
    supports_net_changes: bool | int | None = None
    index_name: str | None = None
    captured_column_list: str | None = None
    filegroup_name: str | None = None
    allow_partition_switch: bool | int = True


@dataclass(frozen=True, slots=True)
class EnablePlan:
    """What a request comes to. ``columns`` are in the order of the source table, whatever the list's."""

    capture_instance: str
    supports_net_changes: bool
    role_name: str | None
    index_name: str | None
    columns: tuple[CapturedColumn, ...]
    index_columns: tuple[IndexColumn, ...]


def check_parameters(request: EnableRequest) -> None:
    """What can be said before looking at the table.

    Raises ParameterEmpty, TableInCdcSchema, RoleNameEmpty, RoleNameInvalid, NotABit.
    """
    check_table_name(request.source_schema, request.source_name)
    if request.source_schema == "cdc":
        raise TableInCdcSchema(request.source_schema, request.source_name)
    _check_role(request.role_name)
    for name in ("supports_net_changes", "allow_partition_switch"):
        value = getattr(request, name)
        if value is not None and value not in (0, 1):
            raise NotABit(f"@{name}")


def filegroup(name: str | None, tablespaces: Callable[[], Sequence[str]]) -> str | None:
    """The filegroup that an instance is said to be in: PRIMARY, or a tablespace of the source in any case.

    Change tables lie in the lake whatever it is; scripts give it, and metadata tell it. Raises
    FilegroupInvalid.
    """
    if name is None:
        return None
    if name.upper() == PRIMARY:
        return PRIMARY
    found = tablespaces()
    for each in (name, *(known for known in found if known.lower() == name.lower())):
        if each in found:
            return each
    raise FilegroupInvalid(name)


def check_table_name(source_schema: str | None, source_name: str | None) -> None:
    """Raises ParameterEmpty unless both are given."""
    for name, value in (("@source_schema", source_schema), ("@source_name", source_name)):
        if not value:
            raise ParameterEmpty(name)


def plan(request: EnableRequest, table: SourceTable, existing: Sequence[CaptureInstance]) -> EnablePlan:
    """The capture instance that a request makes.

    existing: the database's instances. Raises what reference/errors.md lists under "Enable table".
    """
    name = _capture_instance_name(request, table, existing)
    identifier = _identifier(request, table)
    columns = _columns(request, table)
    _check_identifier(request, identifier, columns)
    ids = {column.name: column.column_id for column in table.columns}
    return EnablePlan(
        capture_instance=name,
        supports_net_changes=_net_changes(request, identifier),
        role_name=None if request.role_name is None else request.role_name.rstrip(),
        index_name=None if identifier is None else identifier.name,
        columns=columns,
        index_columns=tuple(
            IndexColumn(column, ordinal, ids[column])
            for ordinal, column in enumerate(identifier.columns if identifier else (), 1)
        ),
    )


def partition_switch(request: EnableRequest, table: SourceTable) -> bool:
    """cdc.change_tables.partition_switch: a table without partitions always has it."""
    return bool(request.allow_partition_switch) or not table.is_partitioned


def partition_note(request: EnableRequest, table: SourceTable, refuses_ddl: bool) -> CdcError | None:
    """What @allow_partition_switch comes to, as a message of severity 10; None where nothing is to be said.

    refuses_ddl: whether the source can refuse DDL (`SourceAdmin.refuses_ddl`).
    """
    names = table.schema, table.name
    if request.allow_partition_switch:
        return SwitchUntracked(*names) if table.is_partitioned else None
    if not table.is_partitioned:
        return SwitchIgnored(*names)
    return SwitchBlocked(*names) if refuses_ddl else SwitchNotBlocked(*names)


def _check_role(role_name: str | None) -> None:
    if role_name is None:
        return
    name = role_name.rstrip()
    if not name:
        raise RoleNameEmpty
    if len(name) > MAX_ROLE_NAME or not _is_identifier(name):
        raise RoleNameInvalid(name)


def _capture_instance_name(
    request: EnableRequest, table: SourceTable, existing: Sequence[CaptureInstance]
) -> str:
    """The name given or ``schema_table``, right-trimmed."""
    given = request.capture_instance
    name = (f"{request.source_schema}_{request.source_name}" if given is None else given).rstrip()
    if not name:
        raise ParameterEmpty("@capture_instance")
    if len(name) > MAX_NAME:
        raise CaptureInstanceNameTooLong(name)
    if not _is_identifier(name):
        raise CaptureInstanceNameInvalid(name)
    if sum(other.source_object_id == table.source_object_id for other in existing) >= MAX_INSTANCES:
        raise TooManyInstances(table.schema, table.name)
    if any(other.capture_instance == name for other in existing):
        raise CaptureInstanceExists(name)
    return name


def _identifier(request: EnableRequest, table: SourceTable) -> SourceIndex | None:
    """The index given, else the primary key, else none: what identifies a row."""
    if request.index_name is None:
        return table.primary_key
    index = next((index for index in table.indexes if index.name == request.index_name), None)
    if index is None:
        raise IndexMissing(request.index_name, table.schema, table.name)
    if not index.is_unique and not index.is_primary_key:
        raise IndexNotUnique(index.name, table.schema, table.name)
    nullable = {column.name for column in table.columns if column.nullable}
    if offending := [column for column in index.columns if column in nullable]:
        raise IndexNullable(index.name, table.schema, table.name, ", ".join(offending))
    if not index.is_valid:
        raise IndexDisabled(index.name, table.schema, table.name)
    return index


def _columns(request: EnableRequest, table: SourceTable) -> tuple[CapturedColumn, ...]:
    """All columns or those listed, numbered in the order of the source table."""
    wanted = {column.name for column in table.columns}
    if request.captured_column_list is not None:
        listed = parse_column_list(request.captured_column_list, table.schema, table.name)
        for name in listed:
            if name not in wanted:
                raise ColumnMissing(name, table.schema, table.name)
        wanted = set(listed)
    chosen = [column for column in table.columns if column.name in wanted]
    for column in chosen:
        if column.name in LEADING_COLUMNS:
            raise ReservedColumnName(table.schema, table.name, column.name)
    if not chosen:
        raise ColumnListUnmappable(table.schema, table.name, "the table has no columns")
    if len(chosen) > MAX_COLUMNS:
        raise TooManyColumns(len(chosen), MAX_COLUMNS)
    return tuple(
        CapturedColumn(
            column_name=column.name,
            column_id=column.column_id,
            column_type=column.source_type,
            column_ordinal=ordinal,
            is_computed=column.is_computed,
            lake_type=column.lake_type,
        )
        for ordinal, column in enumerate(chosen, 1)
    )


def _check_identifier(
    request: EnableRequest, identifier: SourceIndex | None, columns: Sequence[CapturedColumn]
) -> None:
    if identifier is None:
        if request.supports_net_changes:
            raise NoRowIdentifier(request.source_schema, request.source_name)
        return
    captured = {column.column_name for column in columns}
    if lacking := [column for column in identifier.columns if column not in captured]:
        raise IdentifierNotCaptured(", ".join(lacking))
    if len(identifier.columns) > MAX_NET_INDEX_COLUMNS and _net_changes(request, identifier):
        raise TooManyIndexColumns(identifier.name, len(identifier.columns))


def _net_changes(request: EnableRequest, identifier: SourceIndex | None) -> bool:
    if request.supports_net_changes is None:
        return identifier is not None
    return bool(request.supports_net_changes)


def _is_identifier(name: str) -> bool:
    """Whether a delimited identifier may read so: anything but control characters and half characters."""
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in name)
