"""Names of source tables as they are written on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.errors import TableMissing

_PART = re.compile(r'"(?P<quoted>(?:[^"]|"")+)"|\[(?P<bracketed>(?:[^\]]|\]\])+)\]|(?P<plain>[^."\[\]]+)')


def parse_table_name(text: str) -> tuple[str | None, str]:
    """Schema (None when left out) and name of ``SCHEMA.TABLE``; parts with dots in "" or [].

    Inside "" a quote is written twice, inside [] a closing bracket. ValueError for anything else.
    """
    parts: list[str] = []
    position = 0
    while match := _PART.match(text, position):
        parts.append(_value(match))
        position = match.end()
        if text[position : position + 1] != ".":
            break
        position += 1
    if position != len(text) or not 1 <= len(parts) <= 2 or text.endswith("."):
        raise ValueError(f"'{text}' is not a table name: write SCHEMA.TABLE, names with dots in \"\" or []")
    return (parts[0], parts[1]) if len(parts) == 2 else (None, parts[0])


def schema_of(table: str, tables: Iterable[tuple[str, str]]) -> str:
    """The one schema that has a table of this name, among (schema, table) pairs.

    Raises TableMissing when none has, ValueError naming them when several have.
    """
    schemas = sorted(schema for schema, name in tables if name == table)
    if len(schemas) > 1:
        choices = ", ".join(f"{schema}.{table}" for schema in schemas)
        raise ValueError(f"'{table}' is in several schemas: name one of {choices}")
    if not schemas:
        raise TableMissing("*", table)  # in whichever schema
    return schemas[0]


def _value(match: re.Match[str]) -> str:
    if (quoted := match["quoted"]) is not None:
        return quoted.replace('""', '"')
    if (bracketed := match["bracketed"]) is not None:
        return bracketed.replace("]]", "]")
    return match["plain"]
