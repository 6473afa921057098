"""The columns of a Delta table: whether they are the ones expected, and how Parquet calls them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructType

from engine.errors import CdcError
from engine.lake.parquet_files import PhysicalColumn


class ChangeTableDiffers(CdcError):  # noqa: N818 - named like the errors of engine.errors
    """A table is already there with other columns than the capture instance has."""

    number = 50020


def shape(schema: StructType) -> list[tuple[str, str]]:
    """Names and types, without what else a field has."""
    return [(field.name, field.dataType.simpleString()) for field in schema]


def check_columns(path: str, found: StructType, wanted: StructType) -> None:
    """Raises ChangeTableDiffers when a table's columns are others."""
    if shape(found) != shape(wanted):
        raise ChangeTableDiffers(
            f"The table at '{path}' has other columns than expected: "
            f"{found.simpleString()}, not {wanted.simpleString()}."
        )


def physical_columns(schema: StructType) -> Mapping[str, PhysicalColumn]:
    """How each column is called in Parquet."""
    columns = {}
    for field in schema:
        facts = field.metadata or {}
        columns[field.name] = PhysicalColumn(
            facts.get("delta.columnMapping.physicalName", field.name), facts.get("delta.columnMapping.id")
        )
    return columns
