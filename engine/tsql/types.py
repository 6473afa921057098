"""T-SQL's types and typed values. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal

MAX = -1
"""Length of a type without one: ``nvarchar(max)``."""

Scalar = bool | int | float | Decimal | str | bytes | datetime | date | time


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type by its name in lower case.

    length: of strings (characters) and binaries (bytes), MAX for ``max``; precision, scale: of decimals;
    scale alone: fractional digits of seconds.
    """

    name: str
    length: int | None = None
    precision: int | None = None
    scale: int | None = None

    def __str__(self) -> str:
        if self.length is not None:
            return f"{self.name}({'max' if self.length == MAX else self.length})"
        if self.precision is not None:
            return f"{self.name}({self.precision},{self.scale})"
        return self.name if self.scale is None else f"{self.name}({self.scale})"

    @property
    def is_string(self) -> bool:
        """Whether values are text."""
        return self.name in STRINGS

    @property
    def is_binary(self) -> bool:
        """Whether values are bytes."""
        return self.name in BINARIES

    @property
    def is_integer(self) -> bool:
        """Whether values are whole numbers; bit is one."""
        return self.name in INTEGERS

    @property
    def is_number(self) -> bool:
        """Whether arithmetic is done on values."""
        return self.name in INTEGERS or self.name in _EXACT or self.name in _FLOATS

    @property
    def is_exact(self) -> bool:
        """decimal, numeric, money."""
        return self.name in _EXACT

    @property
    def is_float(self) -> bool:
        """real, float."""
        return self.name in _FLOATS

    @property
    def is_moment(self) -> bool:
        """Whether values have a date: date, datetime and its kin."""
        return self.name in MOMENTS


@dataclass(frozen=True, slots=True)
class Value:
    """A value and its type; None is NULL. bit is a bool, datetimeoffset a datetime with a zone."""

    type: SqlType
    value: Scalar | None

    @property
    def is_null(self) -> bool:
        """Whether it is NULL."""
        return self.value is None


STRINGS = frozenset({"char", "varchar", "nchar", "nvarchar", "text", "ntext", "xml"})
UNICODE = frozenset({"nchar", "nvarchar", "ntext", "xml"})
BINARIES = frozenset({"binary", "varbinary", "image", "rowversion"})
INTEGERS: Mapping[str, tuple[int, int]] = {
    "bit": (0, 1),
    "tinyint": (0, 255),
    "smallint": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
}
"""Whole types, smallest first, and their ranges."""
_EXACT = frozenset({"decimal", "numeric", "money", "smallmoney"})
_FLOATS = frozenset({"real", "float"})
MOMENTS = frozenset({"date", "datetime", "datetime2", "smalldatetime", "datetimeoffset"})
_OTHERS = frozenset({"time", "uniqueidentifier", "sql_variant"})
_SECOND_FRACTIONS = frozenset({"time", "datetime2", "datetimeoffset"})

INT, BIGINT, BIT = SqlType("int"), SqlType("bigint"), SqlType("bit")
FLOAT = SqlType("float")
DATETIME, DATE = SqlType("datetime"), SqlType("date")
DATETIME2 = SqlType("datetime2", scale=7)
SYSNAME = SqlType("nvarchar", 128)
TEXT = SqlType("nvarchar", MAX)
LSN = SqlType("binary", 10)
MASK = SqlType("varbinary", 128)
GUID = SqlType("uniqueidentifier")
NULL = Value(INT, None)

PRECEDENCE = (
    "sql_variant", "datetimeoffset", "datetime2", "datetime", "smalldatetime", "date", "time", "float",
    "real",
    "decimal", "numeric", "money", "smallmoney", "bigint", "int", "smallint", "tinyint", "bit", "ntext",
    "text", "image", "rowversion", "uniqueidentifier", "xml", "nvarchar", "nchar", "varchar", "char",
    "varbinary", "binary",
)  # fmt: skip
"""Data type precedence, highest first: of two types the higher one is that of the result."""

_ALIASES: Mapping[str, SqlType] = {
    "sysname": SYSNAME,
    "integer": INT,
    "dec": SqlType("decimal"),
    "timestamp": SqlType("rowversion"),
    "double precision": FLOAT,
    "character": SqlType("char"),
    "utinyint": SqlType("tinyint"),
}
_TEXT = re.compile(r"\[?([a-z0-9_ ]+?)\]?\s*(?:\(\s*(max|\d+)\s*(?:,\s*(\d+)\s*)?\))?", re.IGNORECASE)


def parse_type(text: str, default_length: int = 1) -> SqlType:
    """The type that ``nvarchar(30)`` and the like name. ValueError for an unknown one.

    default_length: of strings and binaries without one; 1 in declarations, 30 in CAST and CONVERT.
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    name = match[1].lower()
    alias = _ALIASES.get(name)
    if alias is not None and (alias.length is not None or (match[2] is None and alias.name not in STRINGS)):
        return _completed(alias.name, default_length) if alias.length is None else alias
    return _completed(alias.name if alias else name, default_length, match[2], match[3])


def _completed(
    name: str, default_length: int, first: str | None = None, second: str | None = None
) -> SqlType:
    """A type with its defaults filled in."""
    if name in ("text", "ntext", "image", "xml"):
        return SqlType({"text": "varchar", "ntext": "nvarchar", "image": "varbinary"}.get(name, name), MAX)
    if name in STRINGS or name in ("binary", "varbinary"):
        return SqlType(
            name, default_length if first is None else MAX if first.lower() == "max" else int(first)
        )
    if name in ("decimal", "numeric"):
        precision = 18 if first is None else int(first)
        scale = 0 if second is None else int(second)
        if not 1 <= precision <= 38 or scale > precision:
            raise ValueError(f"{name}({precision},{scale})")
        return SqlType(name, precision=precision, scale=scale)
    if name == "float":
        return SqlType("real") if first is not None and int(first) <= 24 else FLOAT
    if name in _SECOND_FRACTIONS:
        return SqlType(name, scale=7 if first is None else int(first))
    if name in INTEGERS or name in _EXACT or name in _FLOATS or name in MOMENTS or name in _OTHERS:
        return SqlType(name)
    if name == "rowversion":
        return SqlType("binary", 8)
    raise ValueError(name)


def higher(one: SqlType, other: SqlType) -> SqlType:
    """The type with the higher precedence; of two of one name, the wider."""
    first, second = PRECEDENCE.index(one.name), PRECEDENCE.index(other.name)
    if first != second:
        chosen, rest = (one, other) if first < second else (other, one)
        if chosen.length is not None and rest.length is not None and chosen.is_string == rest.is_string:
            return SqlType(chosen.name, _longer(chosen.length, rest.length))
        return chosen
    if one.length is not None and other.length is not None:
        return SqlType(one.name, _longer(one.length, other.length))
    if one.precision is not None and other.precision is not None:
        scale = max(one.scale or 0, other.scale or 0)
        whole = max(one.precision - (one.scale or 0), other.precision - (other.scale or 0))
        return SqlType(one.name, precision=min(38, whole + scale), scale=scale)
    return one if (one.scale or 0) >= (other.scale or 0) else other


def _longer(one: int, other: int) -> int:
    return MAX if MAX in (one, other) else max(one, other)
