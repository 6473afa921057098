"""FORMAT's patterns, which are those of .NET, as Python, PostgreSQL and Spark write them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from engine.tsql.messages import sql_error

_STANDARD: Mapping[str, str] = {
    "d": "M/d/yyyy",
    "D": "dddd, MMMM d, yyyy",
    "f": "dddd, MMMM d, yyyy h:mm tt",
    "F": "dddd, MMMM d, yyyy h:mm:ss tt",
    "g": "M/d/yyyy h:mm tt",
    "G": "M/d/yyyy h:mm:ss tt",
    "M": "MMMM d",
    "m": "MMMM d",
    "s": "yyyy-MM-ddTHH:mm:ss",
    "t": "h:mm tt",
    "T": "h:mm:ss tt",
    "u": "yyyy-MM-dd HH:mm:ssZ",
    "Y": "MMMM yyyy",
    "y": "MMMM yyyy",
}
"""Patterns of one letter, as culture en-US has them."""
_PART = re.compile(r"y+|M+|d+|H+|h+|m+|s+|f+|t+|'[^']*'|\"[^\"]*\"|\\.|.", re.DOTALL)
_NUMBER = re.compile(r"([NFD])(\d*)", re.IGNORECASE)

_Said = tuple[str, str, Callable[[datetime], str]]
"""A part as PostgreSQL and Spark write it, and its value."""
_PARTS: Mapping[str, _Said] = {
    "yyyy": ("YYYY", "yyyy", lambda m: f"{m.year:04d}"),
    "yy": ("YY", "yy", lambda m: f"{m.year % 100:02d}"),
    "MMMM": ("FMMonth", "MMMM", lambda m: m.strftime("%B")),
    "MMM": ("Mon", "MMM", lambda m: m.strftime("%b")),
    "MM": ("MM", "MM", lambda m: f"{m.month:02d}"),
    "M": ("FMMM", "M", lambda m: str(m.month)),
    "dddd": ("FMDay", "EEEE", lambda m: m.strftime("%A")),
    "ddd": ("Dy", "EEE", lambda m: m.strftime("%a")),
    "dd": ("DD", "dd", lambda m: f"{m.day:02d}"),
    "d": ("FMDD", "d", lambda m: str(m.day)),
    "HH": ("HH24", "HH", lambda m: f"{m.hour:02d}"),
    "H": ("FMHH24", "H", lambda m: str(m.hour)),
    "hh": ("HH12", "hh", lambda m: f"{(m.hour + 11) % 12 + 1:02d}"),
    "h": ("FMHH12", "h", lambda m: str((m.hour + 11) % 12 + 1)),
    "mm": ("MI", "mm", lambda m: f"{m.minute:02d}"),
    "m": ("FMMI", "m", lambda m: str(m.minute)),
    "ss": ("SS", "ss", lambda m: f"{m.second:02d}"),
    "s": ("FMSS", "s", lambda m: str(m.second)),
    "fff": ("MS", "SSS", lambda m: f"{m.microsecond // 1000:03d}"),
    "ffffff": ("US", "SSSSSS", lambda m: f"{m.microsecond:06d}"),
    "tt": ("AM", "a", lambda m: "AM" if m.hour < 12 else "PM"),
}


def is_of_numbers(pattern: str) -> bool:
    """Whether a pattern is one of numbers: ``N2``, ``F0``, ``D5``, or made of zeros and #."""
    # D and F alone are patterns of dates too; a length tells.
    return bool(re.fullmatch(r"[Nn]\d*|[FfDd]\d+|[0#.,%]*[0#][0#.,%]*", pattern))


def formatted_number(number: Decimal, pattern: str) -> str:
    """FORMAT of a number. Raises 50040."""
    if known := _NUMBER.fullmatch(pattern):
        kind, digits = known[1].upper(), known[2]
        if kind == "D":
            whole = f"{abs(number):.0f}".rjust(int(digits or 0), "0")
            return f"-{whole}" if number < 0 else whole
        rounded = number.quantize(Decimal(1).scaleb(-int(digits or 2)), ROUND_HALF_UP)
        return f"{rounded:,f}" if kind == "N" else f"{rounded:f}"
    if not re.fullmatch(r"#*,?[0#]*(\.0*)?", pattern):
        raise sql_error(50040, f"FORMAT with '{pattern}'", _NUMBERS)
    places, least = len(pattern.partition(".")[2]), pattern.partition(".")[0].count("0")
    rounded = number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    whole, point, rest = f"{abs(rounded):f}".partition(".")
    whole = whole.lstrip("0").rjust(least, "0")
    if "," in pattern and whole:
        whole = f"{int(whole):,}" if least <= 1 else whole
    return ("-" if rounded < 0 else "") + whole + point + rest


_NUMBERS = "Supported are N, F and D with a number of digits, and patterns of 0 and #."


def formatted_moment(moment: datetime, pattern: str) -> str:
    """FORMAT of a date or time. Raises 50040."""
    return "".join(text if part is None else part[2](moment) for part, text in _parts(pattern))


def source_pattern(pattern: str) -> str:
    """What PostgreSQL's to_char is given. Raises 50040."""
    return "".join(
        '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' if part is None else part[0]
        for part, text in _parts(pattern)
    )


def spark_pattern(pattern: str) -> str:
    """What Spark's date_format is given. Raises 50040."""
    return "".join(
        "'" + text.replace("'", "''") + "'" if part is None else part[1] for part, text in _parts(pattern)
    )


def _parts(pattern: str) -> list[tuple[_Said | None, str]]:
    """Parts of times, and the text between them."""
    if re.fullmatch(r"[A-Za-z]\d*", pattern) and pattern not in _STANDARD:
        raise sql_error(50040, f"FORMAT with '{pattern}'", f"Of dates there are {', '.join(_STANDARD)}.")
    found: list[tuple[_Said | None, str]] = []
    for text in _PART.findall(_STANDARD.get(pattern, pattern)):
        part = _PARTS.get(text)
        if part is None and text[0] in "yMdHhmsft":
            raise sql_error(50040, f"FORMAT with '{text}'", f"Supported are {', '.join(_PARTS)}.")
        plain = text[1:-1] if text[0] in "'\"" and len(text) > 1 else text[1:] if text[0] == "\\" else text
        if part is None and found and found[-1][0] is None:
            found[-1] = (None, found[-1][1] + plain)
        else:
            found.append((part, plain))
    return found
