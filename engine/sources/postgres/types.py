"""PostgreSQL's types and what the lake makes of them. docs/types.md is the mapping for users, value by value.

A number, boolean, date, time stamp or byte string has the lake's own type, an array that of its elements,
a domain that of its base type; everything else is PostgreSQL's text. A replaced value is never silent:
`Decoding.replaced` is told of each, and PostgresLog logs table, column, what was done and how many values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto

import pyarrow as pa

from engine.sources.postgres.connection import Connection, any_bytes

BOOL, BYTEA, NAME, INT8, INT2, INT4, TEXT, JSON, FLOAT4, FLOAT8 = 16, 17, 19, 20, 21, 23, 25, 114, 700, 701
PG_NODE_TREE = 194
BPCHAR, VARCHAR, DATE, TIMESTAMP, TIMESTAMPTZ, NUMERIC, UUID, JSONB = (
    1042,
    1043,
    1082,
    1114,
    1184,
    1700,
    2950,
    3802,
)

LARGEST_PRECISION = 38
_FIRST_OF_USERS = 16384
"""Smaller oids are of the server's own objects, whose names stay."""
_NAME_OF_GONE = "???"
"""What format_type makes of an oid without a type."""


class Form(Enum):
    """How the bytes of a value in pgoutput's binary form become a lake value."""

    INT16 = auto()
    INT32 = auto()
    INT64 = auto()
    FLOAT32 = auto()
    FLOAT64 = auto()
    BOOLEAN = auto()
    DATE = auto()
    TIMESTAMP = auto()
    DECIMAL = auto()
    BYTES = auto()
    TEXT = auto()
    """The binary form is the text itself."""
    JSONB = auto()
    """A version byte, then the text."""
    UUID = auto()
    ARRAY = auto()
    SERVER = auto()
    """Only the server knows: it is asked for its text (`ServerValues`)."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column's type at source and in the lake.

    ``oid`` is the type's (a domain's base type's), ``array_oid`` that of its array type, 0 without one.
    ``element`` is set for arrays only; precision and scale for decimals only.
    """

    oid: int
    array_oid: int
    source_type: str
    lake_type: str
    arrow_type: pa.DataType
    form: Form
    element: ColumnType | None = None
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True)
class CatalogType:
    """A row of pg_type, as far as it matters. ``array_oid`` and ``element_oid`` are 0 where there is none."""

    oid: int
    kind: str
    base_oid: int
    base_typmod: int
    array_oid: int
    element_oid: int


_FIXED: dict[int, tuple[str, pa.DataType, Form]] = {
    BOOL: ("boolean", pa.bool_(), Form.BOOLEAN),
    INT2: ("smallint", pa.int16(), Form.INT16),
    INT4: ("int", pa.int32(), Form.INT32),
    INT8: ("bigint", pa.int64(), Form.INT64),
    FLOAT4: ("float", pa.float32(), Form.FLOAT32),
    FLOAT8: ("double", pa.float64(), Form.FLOAT64),
    DATE: ("date", pa.date32(), Form.DATE),
    TIMESTAMP: ("timestamp_ntz", pa.timestamp("us"), Form.TIMESTAMP),
    TIMESTAMPTZ: ("timestamp", pa.timestamp("us", tz="UTC"), Form.TIMESTAMP),
    BYTEA: ("binary", pa.binary(), Form.BYTES),
    TEXT: ("string", pa.string(), Form.TEXT),
    VARCHAR: ("string", pa.string(), Form.TEXT),
    BPCHAR: ("string", pa.string(), Form.TEXT),
    NAME: ("string", pa.string(), Form.TEXT),
    JSON: ("string", pa.string(), Form.TEXT),
    # The server gives it as text, but takes it back in no form.
    PG_NODE_TREE: ("string", pa.string(), Form.TEXT),
    JSONB: ("string", pa.string(), Form.JSONB),
    UUID: ("string", pa.string(), Form.UUID),
}

# array_oid only where the element's array type is this very type: int2vector and oidvector are no arrays.
_CATALOG_QUERY = """
SELECT t.oid, t.typtype::text, t.typbasetype, t.typtypmod, t.typarray,
       CASE WHEN e.typarray = t.oid THEN t.typelem ELSE 0 END
FROM pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem
WHERE t.oid = ANY(%s)
"""


def numeric_shape(typmod: int) -> tuple[int, int] | None:
    """Precision and scale of a decimal that holds numeric's ``typmod``; None when there is none so small.

    numeric(3,-2) holds up to 99900: decimal(5,0); numeric(3,5) only five decimals: decimal(5,5).
    """
    if typmod < 4:
        return None
    precision, scale = (typmod - 4) >> 16 & 0xFFFF, ((typmod - 4 & 0x7FF) ^ 0x400) - 0x400
    whole, fraction = max(precision - scale, 0), max(scale, 0)
    if whole + fraction > LARGEST_PRECISION:
        return None
    return whole + fraction, fraction


def type_id(oid: int, typmod: int) -> str:
    """What stays the same while a column has its type, also when the type is renamed."""
    return f"{oid}:{typmod}"


class TypeCatalog:
    """Column types by oid and modifier, asked of the source once each.

    A type that is gone from the catalog, although the log still speaks of it, is stored as string:
    ``has_gone`` says that one was asked for.
    """

    def __init__(self, connection: Connection) -> None:
        self.has_gone = False
        self._connection = connection
        self._types: dict[int, CatalogType] = {}
        self._columns: dict[tuple[int, int], ColumnType] = {}

    def column_types(self, columns: Iterable[tuple[int, int]]) -> list[ColumnType]:
        """For each (oid, typmod) its column type, in order."""
        wanted = list(columns)
        missing = sorted({column for column in wanted if column not in self._columns})
        if missing:
            self._learn({oid for oid, _ in missing})
            names = self._names(missing)
            for oid, typmod in missing:
                self._columns[oid, typmod] = self._resolve(oid, typmod, names[oid, typmod])
        return [self._columns[column] for column in wanted]

    def forget_names(self, columns: Iterable[tuple[int, int]]) -> None:
        """Asks anew what these types are called; one that is gone keeps the name that it had."""
        named = [column for column in columns if column[0] >= _FIRST_OF_USERS and column in self._columns]
        for column, name in self._names(named).items():
            if name != _NAME_OF_GONE:
                self._columns[column] = replace(self._columns[column], source_type=name)

    def _learn(self, oids: set[int]) -> None:
        """Fetches these types and what they rest on."""
        while unknown := oids - self._types.keys():
            rows = self._connection.execute(_CATALOG_QUERY, [list(unknown)]).fetchall()
            found = {row[0]: CatalogType(*row) for row in rows}
            self.has_gone |= len(found) < len(unknown)
            for oid in unknown:
                self._types[oid] = found.get(oid, CatalogType(oid, "", 0, -1, 0, 0))
            oids = {oid for type_ in found.values() for oid in (type_.base_oid, type_.element_oid) if oid}

    def _names(self, columns: list[tuple[int, int]]) -> dict[tuple[int, int], str]:
        with any_bytes(self._connection):
            rows = self._connection.execute(
                "SELECT o, m, format_type(o, m) FROM unnest(%s::oid[], %s::int[]) AS x(o, m)",
                [[oid for oid, _ in columns], [typmod for _, typmod in columns]],
            ).fetchall()
        return {(oid, typmod): name for oid, typmod, name in rows}

    def _resolve(self, oid: int, typmod: int, source_type: str) -> ColumnType:
        type_ = self._types[oid]
        if type_.kind == "d":
            return self._resolve(type_.base_oid, type_.base_typmod, source_type)
        if type_.element_oid:
            return _array_of(self._resolve(type_.element_oid, typmod, source_type), type_, source_type)
        if oid == NUMERIC and (shape := numeric_shape(typmod)):
            return _decimal(type_, source_type, *shape)
        if type_.kind == "e":
            return ColumnType(oid, type_.array_oid, source_type, "string", pa.string(), Form.TEXT)
        lake_type, arrow_type, form = _FIXED.get(oid, ("string", pa.string(), Form.SERVER))
        return ColumnType(oid, type_.array_oid, source_type, lake_type, arrow_type, form)


def _decimal(type_: CatalogType, source_type: str, precision: int, scale: int) -> ColumnType:
    return ColumnType(
        type_.oid,
        type_.array_oid,
        source_type,
        f"decimal({precision},{scale})",
        pa.decimal128(precision, scale),
        Form.DECIMAL,
        precision=precision,
        scale=scale,
    )


def _array_of(element: ColumnType, type_: CatalogType, source_type: str) -> ColumnType:
    return ColumnType(
        type_.oid,
        type_.array_oid,
        source_type,
        f"array<{element.lake_type}>",
        pa.list_(pa.field("element", element.arrow_type)),
        Form.ARRAY,
        element=element,
    )
