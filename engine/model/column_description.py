"""Rows of sys.sp_cdc_get_captured_columns, and what a type's text says of lengths and precisions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.model.capture_instance import CaptureInstance

UNLIMITED = -1
"""character_maximum_length of a type without one, as the original has for varchar(max)."""

_MICROSECONDS = 6
_DECIMAL, _BINARY = 10, 2

# Whole numbers as the original counts them: decimal digits, no scale. Floating ones in binary digits.
_NUMBERS: Mapping[str, tuple[int, int, int | None]] = {
    "smallint": (5, _DECIMAL, 0),
    "integer": (10, _DECIMAL, 0),
    "bigint": (19, _DECIMAL, 0),
    "real": (24, _BINARY, None),
    "double precision": (53, _BINARY, None),
}
_STRINGS = frozenset({"character varying", "text", "bytea", "bit varying"})
_FIXED_STRINGS = frozenset({"character", "bit"})
_TIMES = re.compile(r"(timestamp|time) with(out)? time zone|interval( .+)?")
# format_type puts the modifier after the type's name, but before words like "without time zone".
_MODIFIED = re.compile(r"(?P<name>[^(\[\]]+?)(?:\((?P<values>-?\d+(?:,-?\d+)?)\))?(?P<rest> [^(\[\]]+)?")


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """A type text taken apart; None where a fact does not apply to the type, or the text does not say it."""

    data_type: str
    character_maximum_length: int | None = None
    numeric_precision: int | None = None
    numeric_precision_radix: int | None = None
    numeric_scale: int | None = None
    datetime_precision: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """One row of sys.sp_cdc_get_captured_columns (reference/procedures.md, 5).

    ``column_ordinal`` is the position among the captured columns, as in cdc.captured_columns.
    """

    source_schema: str
    source_table: str
    capture_instance: str
    column_name: str
    column_id: int
    column_ordinal: int
    data_type: str
    character_maximum_length: int | None
    numeric_precision: int | None
    numeric_precision_radix: int | None
    numeric_scale: int | None
    datetime_precision: int | None


def column_descriptions(instance: CaptureInstance) -> list[ColumnDescription]:
    """A row for each captured column, by ordinal."""
    described = []
    for column in instance.columns:
        facts = type_facts(column.column_type)
        described.append(
            ColumnDescription(
                source_schema=instance.source_schema,
                source_table=instance.source_table,
                capture_instance=instance.capture_instance,
                column_name=column.column_name,
                column_id=column.column_id,
                column_ordinal=column.column_ordinal,
                data_type=facts.data_type,
                character_maximum_length=facts.character_maximum_length,
                numeric_precision=facts.numeric_precision,
                numeric_precision_radix=facts.numeric_precision_radix,
                numeric_scale=facts.numeric_scale,
                datetime_precision=facts.datetime_precision,
            )
        )
    return described


def type_facts(column_type: str) -> TypeFacts:
    """What a source's type text (``numeric(12,2)``, ``timestamp(3) without time zone``) says.

    Numbers of whole types are the original's: decimal digits, where PostgreSQL counts bits. Arrays,
    domains and other types of the source's own are their name alone.
    """
    match = _MODIFIED.fullmatch(column_type)
    if match is None:
        return TypeFacts(column_type)
    name = match["name"] + (match["rest"] or "")
    values = [int(value) for value in (match["values"] or "").split(",") if value]
    if name in _NUMBERS:
        precision, radix, scale = _NUMBERS[name]
        return TypeFacts(
            name, numeric_precision=precision, numeric_precision_radix=radix, numeric_scale=scale
        )
    if name == "numeric":
        return _numeric(values)
    if name in _STRINGS | _FIXED_STRINGS:
        length = values[0] if values else 1 if name in _FIXED_STRINGS else UNLIMITED
        return TypeFacts(name, character_maximum_length=length)
    if name == "date":
        return TypeFacts(name, datetime_precision=0)
    if _TIMES.fullmatch(name):
        return TypeFacts(name, datetime_precision=values[0] if values else _MICROSECONDS)
    return TypeFacts(column_type)


def _numeric(values: list[int]) -> TypeFacts:
    """numeric(p,s), or numeric, which has neither precision nor scale."""
    precision, scale = values if values else (None, None)
    return TypeFacts(
        "numeric", numeric_precision=precision, numeric_precision_radix=_DECIMAL, numeric_scale=scale
    )
