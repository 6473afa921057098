"""Values of change rows as text, exactly: by the column's lake type. Pure; no Spark.

Temporal values come as Spark's own text (see `temporal_as_text`), because Python's dates and times end at
the year 9999 and lose the offset when a clock is set back.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

Encoder = Callable[[Any], str]

_ARRAY = re.compile(r"array<(.*)>", re.DOTALL)
_TEMPORAL = ("date", "timestamp", "timestamp_ntz")


def temporal_as_text(lake_type: str) -> str | None:
    """The Spark type to cast a column of ``lake_type`` to before it is fetched; None when it stays."""
    if lake_type in _TEMPORAL:
        return "string"
    if match := _ARRAY.fullmatch(lake_type):
        element = temporal_as_text(match[1])
        return element and f"array<{element}>"
    return None


def json_encoder(lake_type: str) -> Encoder:
    """JSON text of a value, ``null`` for None.

    Integers, decimals and finite floats are JSON numbers with every digit of the value (a decimal keeps
    its scale); NaN and infinities are strings; binary is ``0x`` and upper-case hex; dates and times ISO 8601.
    """
    encode = _json_of(lake_type)
    return lambda value: "null" if value is None else encode(value)


def text_encoder(lake_type: str) -> Encoder:
    """Plain text of a value that is not None: as `json_encoder`, without the quotes of strings."""
    if _ARRAY.fullmatch(lake_type):
        return _json_of(lake_type)
    plain = _PLAIN.get(lake_type.split("(")[0])
    if plain is None:
        return _json_of(lake_type)
    return plain


def _json_of(lake_type: str) -> Encoder:
    if match := _ARRAY.fullmatch(lake_type):
        element = json_encoder(match[1])
        return lambda values: f"[{', '.join(element(value) for value in values)}]"
    name = lake_type.split("(")[0]
    plain = _PLAIN[name]
    if name in ("float", "double"):
        return lambda value: plain(value) if math.isfinite(value) else f'"{plain(value)}"'
    if name in _NUMBERS:
        return plain
    return lambda value: json.dumps(plain(value), ensure_ascii=False)


def _float(value: float, shortest: Callable[[float], str]) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return shortest(value)


def _single(value: float) -> str:
    # A real came as a double: 0.1 would be 0.10000000149011612.
    return _float(value, lambda finite: str(np.float32(finite)))


def _double(value: float) -> str:
    return _float(value, repr)


def _decimal(value: Decimal) -> str:
    return f"{value:f}"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _binary(value: bytes) -> str:
    return "0x" + value.hex().upper()


def _timestamp_ntz(value: str) -> str:
    """From Spark's ``2026-01-05 08:00:00.5``: the fraction has six digits or is left out, as in Python."""
    text, dot, fraction = value.replace(" ", "T").partition(".")
    return f"{text}{dot}{fraction:0<6}" if dot else text


def _timestamp(value: str) -> str:
    return f"{_timestamp_ntz(value)}+00:00"


_PLAIN: dict[str, Encoder] = {
    "tinyint": str,
    "smallint": str,
    "int": str,
    "bigint": str,
    "float": _single,
    "double": _double,
    "decimal": _decimal,
    "boolean": _boolean,
    "string": str,
    "date": str,
    "timestamp_ntz": _timestamp_ntz,
    "timestamp": _timestamp,
    "binary": _binary,
}
_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "decimal", "boolean"})
