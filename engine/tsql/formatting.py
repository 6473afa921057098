"""RAISERROR's texts with their places for values: ``%s``, ``%d``, ``%-10s``, ``%*d`` …. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.tsql.conversion import as_text, convert
from engine.tsql.messages import sql_error
from engine.tsql.types import BIGINT, Value

_PLACE = re.compile(
    r"%(?P<flags>[-+0# ]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d+))?(?P<size>h|l|I64)?(?P<kind>.)"
)
_LONGEST = 2047


def formatted(text: str, values: Sequence[Value]) -> str:
    """The text with the values in their places; missing ones are shown as ``(null)``. Raises 2787."""
    rest = list(values)

    def put(match: re.Match[str]) -> str:
        kind = match["kind"]
        if kind == "%":
            return "%"
        width = _number(match["width"], rest)
        precision = _number(match["precision"], rest)
        if kind not in "sdiuoxX":
            raise sql_error(2787, match[0])
        if not rest:
            return "(null)"
        value = rest.pop(0)
        if value.is_null:
            return "(null)"
        shown = as_text(value)[:precision] if kind == "s" else _integer(value, kind, match["flags"])
        if width is None:
            return shown
        if "-" in match["flags"]:
            return shown.ljust(width)
        return shown.rjust(width, "0" if "0" in match["flags"] and kind != "s" else " ")

    return _PLACE.sub(put, text)[:_LONGEST]


def _number(text: str | None, rest: list[Value]) -> int | None:
    if text != "*":
        return None if text is None else int(text)
    return int(convert(rest.pop(0), BIGINT).value or 0) if rest else None  # type: ignore[arg-type]


def _integer(value: Value, kind: str, flags: str) -> str:
    if not value.type.is_integer:
        raise sql_error(2786, kind)
    number = int(value.value or 0)  # type: ignore[arg-type]
    shown = {"o": f"{number:o}", "x": f"{number:x}", "X": f"{number:X}"}.get(kind, str(number))
    return f"+{shown}" if "+" in flags and number >= 0 and kind in "di" else shown
