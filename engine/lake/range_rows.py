"""Rows of a range of LSNs in one version of a Delta table, as Spark reads them."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from engine.lake.range_files import RangeOfTable, name_in_files, range_by_log
from engine.lake.sql_text import delta_table, quoted, renamed
from engine.model.lsn import Lsn

MOST_FILES = 32
"""Files that Spark is told by their names, at most: more it would list in a job, and gain nothing."""


def range_rows(
    spark: SparkSession, path: str, position: str, low: Lsn, high: Lsn, version: int | None
) -> DataFrame:
    """The rows whose ``position`` is in ``low`` … ``high``, in no order, with all columns of the table.

    version: of the table, in which they are read whenever that happens; None: in that of the moment.

    A few files of a local lake are read by their names, which Arrow finds in Delta's log in milliseconds:
    Spark need not load another version of the table first, a tenth of a second for each question.
    """
    condition = f"{quoted(position)} >= '{low}' AND {quoted(position)} <= '{high}'"
    found = None if version is None else range_by_log(path, position, low, high, version)
    if found is None or len(found.files) > MOST_FILES:
        return spark.sql(f"SELECT * FROM {delta_table(path, version)} WHERE {condition}")
    return _by_name(spark, found).where(condition)


def no_rows(spark: SparkSession, columns: Iterable[tuple[str, str]]) -> DataFrame:
    """A frame with nothing in it, for which no job is run. columns: type and name of each."""
    nothing = renamed((f"CAST(NULL AS {lake_type})", name) for lake_type, name in columns)
    return spark.sql(f"SELECT {nothing} WHERE false")


def _by_name(spark: SparkSession, found: RangeOfTable) -> DataFrame:
    schema = StructType.fromJson({"type": "struct", "fields": list(found.fields)})
    if not found.files:
        return no_rows(spark, ((field.dataType.simpleString(), field.name) for field in schema))
    names = [name_in_files(field) for field in found.fields]
    in_files = StructType(
        [StructField(name, field.dataType) for name, field in zip(names, schema, strict=True)]
    )
    rows = spark.read.schema(in_files).parquet(*(file.path for file in found.files))
    if names == schema.names:
        return rows
    pairs = zip(names, schema.names, strict=True)
    return rows.selectExpr(*(f"{quoted(name)} AS {quoted(column)}" for name, column in pairs))
