"""Arithmetic and comparison as T-SQL has them: type precedence, NULL, overflow. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache

from engine.tsql.conversion import checked_integer, convert, moment_plus_days, rounded_moment
from engine.tsql.messages import sql_error
from engine.tsql.types import BIGINT, DATETIME, FLOAT, INT, MAX, NULL, SqlType, Value, higher

_DIGITS: Mapping[str, tuple[int, int]] = {
    "bit": (1, 0), "tinyint": (3, 0), "smallint": (5, 0), "int": (10, 0), "bigint": (19, 0),
    "money": (19, 4), "smallmoney": (10, 4),
}  # fmt: skip
"""Precision and scale of a number as a decimal."""
_LARGEST = 38
_MIN_SCALE = 6


def arithmetic(operator: str, left: Value, right: Value) -> Value:
    """``left operator right`` for + - * / %. Raises 402, 8115, 8134."""
    if operator == "+" and (joined := _joined(left, right)) is not None:
        return joined
    if left.type.is_moment or right.type.is_moment:
        return _moved(operator, left, right)
    left, right = _as_number(left), _as_number(right)
    if left.type.is_float or right.type.is_float:
        return _float(operator, left, right)
    if left.type.is_exact or right.type.is_exact:
        return _exact(operator, left, right)
    return _whole(operator, left, right)


def negated(value: Value) -> Value:
    """``-value``."""
    number = _as_number(value)
    if number.type.name in ("bit", "tinyint"):
        number = convert(number, INT)
    if number.value is None:
        return number
    raw = number.value
    assert isinstance(raw, int | float | Decimal)
    return Value(number.type, checked_integer(-raw, number.type) if isinstance(raw, int) else -raw)


def bitwise(operator: str, left: Value, right: Value) -> Value:
    """``&``, ``|``, ``^`` of whole numbers."""
    left, right = _as_number(left), _as_number(right)
    if not (left.type.is_integer and right.type.is_integer):
        raise sql_error(402, left.type.name, right.type.name, operator)
    type_ = higher(left.type, right.type)
    if left.value is None or right.value is None:
        return Value(type_, None)
    first, second = int(left.value), int(right.value)  # type: ignore[arg-type]
    found = first & second if operator == "&" else first | second if operator == "|" else first ^ second
    return convert(Value(BIGINT, found), type_)


def compare(left: Value, right: Value) -> int | None:
    """-1, 0 or 1; None where one is NULL. Text without regard to case and trailing blanks."""
    type_ = higher(left.type, right.type)
    if type_.length is not None:
        type_ = SqlType("varbinary" if type_.is_binary else "nvarchar", MAX)
    elif type_.is_exact or type_.is_integer:
        type_ = FLOAT if "float" in (left.type.name, right.type.name) else SqlType("number")
    if left.value is None or right.value is None:
        return None
    first, second = _comparable(left, type_), _comparable(right, type_)
    return int(first > second) - int(first < second)  # type: ignore[operator]


def _comparable(value: Value, type_: SqlType) -> object:
    if type_.name == "number":
        raw = value.value
        if isinstance(raw, str):
            raw = convert(value, SqlType("decimal", precision=38, scale=10) if "." in raw else BIGINT).value
        elif isinstance(raw, bytes):
            raw = convert(value, BIGINT).value
        return raw
    raw = convert(value, type_).value
    return raw.rstrip(" ").casefold() if isinstance(raw, str) else raw


@lru_cache(maxsize=256)
def _pattern(text: str, escape: str | None) -> re.Pattern[str]:
    result, position = "", 0
    while position < len(text):
        char = text[position]
        if escape and char == escape and position + 1 < len(text):
            result += re.escape(text[position + 1])
            position += 2
            continue
        if char == "[" and (end := text.find("]", position + 2)) > 0:
            inner = text[position + 1 : end]
            mark = "^" if inner.startswith("^") else ""
            inner = inner.removeprefix("^")
            safe = "".join(
                c if c == "-" and 0 < i < len(inner) - 1 else re.escape(c) for i, c in enumerate(inner)
            )
            result += f"[{mark}{safe}]"
            position = end + 1
            continue
        result += {"%": ".*", "_": "."}.get(char) or re.escape(char)
        position += 1
    return re.compile(result, re.IGNORECASE | re.DOTALL)


def like(text: Value, pattern: Value, escape: str | None = None) -> bool | None:
    """LIKE with %, _ and [sets], without regard to case."""
    if text.value is None or pattern.value is None:
        return None
    wide = SqlType("nvarchar", MAX)
    subject, shape = convert(text, wide).value, convert(pattern, wide).value
    return _pattern(str(shape), escape).fullmatch(str(subject)) is not None


# Arithmetic by kind of number


def _joined(left: Value, right: Value) -> Value | None:
    """Text and bytes put together; None where + is a sum."""
    if (left is NULL) != (right is NULL):  # NULL has no type of its own
        typed = right if left is NULL else left
        return None if typed.type.is_number or typed.type.is_moment else Value(typed.type, None)
    for kind in ("is_string", "is_binary"):
        if getattr(left.type, kind) and getattr(right.type, kind):
            name = higher(left.type, right.type).name.replace("nchar", "nvarchar").replace("xml", "nvarchar")
            name = {"char": "varchar", "binary": "varbinary"}.get(name, name)
            lengths = (left.type.length or 0, right.type.length or 0)
            length = MAX if MAX in lengths else min(sum(lengths), 8000)
            type_ = SqlType(name, length)
            if left.value is None or right.value is None:
                return Value(type_, None)
            return Value(type_, left.value + right.value)  # type: ignore[operator]
    return None


def _moved(operator: str, left: Value, right: Value) -> Value:
    """A datetime and a number of days."""
    moment, days = (left, right) if left.type.is_moment else (right, left)
    whole = left.type.is_moment and right.type.is_moment
    if operator not in ("+", "-") or whole or moment.type.name not in ("datetime", "smalldatetime"):
        raise sql_error(
            402, left.type.name, right.type.name, {"+": "add", "-": "subtract"}.get(operator, operator)
        )
    if moment.value is None or days.value is None:
        return Value(moment.type, None)
    count = convert(days, FLOAT).value
    assert isinstance(count, float)
    assert isinstance(moment.value, datetime)
    moved = moment_plus_days(moment.value, count if operator == "+" else -count)
    return Value(moment.type, rounded_moment(moved, DATETIME))


def _as_number(value: Value) -> Value:
    if value.type.is_number:
        return value
    if value.type.is_string:
        return convert(value, INT)
    if value.type.is_binary:
        return convert(value, INT)
    raise sql_error(402, value.type.name, "int", "arithmetic")


def _whole(operator: str, left: Value, right: Value) -> Value:
    type_ = higher(left.type, right.type)
    if type_.name == "bit":
        type_ = SqlType("int")
    if left.value is None or right.value is None:
        return Value(type_, None)
    first, second = int(left.value), int(right.value)  # type: ignore[arg-type]
    if operator in ("/", "%"):
        if second == 0:
            raise sql_error(8134)
        quotient = abs(first) // abs(second) * (1 if (first < 0) == (second < 0) else -1)
        found = quotient if operator == "/" else first - second * quotient
    else:
        found = {"+": first + second, "-": first - second, "*": first * second}[operator]
    low, high = (-(2**31), 2**31 - 1) if type_.name == "int" else (None, None)
    if low is not None and high is not None and not low <= found <= high:
        raise sql_error(8115, "expression", "int")
    return Value(type_, checked_integer(found, type_))


def _float(operator: str, left: Value, right: Value) -> Value:
    if left.value is None or right.value is None:
        return Value(FLOAT, None)
    first, second = float(left.value), float(right.value)  # type: ignore[arg-type]
    if operator in ("/", "%") and second == 0:
        raise sql_error(8134)
    try:
        found = {
            "+": lambda: first + second,
            "-": lambda: first - second,
            "*": lambda: first * second,
            "/": lambda: first / second,
            "%": lambda: first - second * int(first / second),
        }[operator]()
    except OverflowError:
        raise sql_error(8115, "expression", "float") from None
    return Value(FLOAT, found)


def _exact(operator: str, left: Value, right: Value) -> Value:
    type_ = _exact_type(operator, _digits(left.type), _digits(right.type))
    if left.value is None or right.value is None:
        return Value(type_, None)
    with localcontext(prec=120):
        first, second = Decimal(left.value), Decimal(right.value)  # type: ignore[arg-type]
        if operator in ("/", "%") and second == 0:
            raise sql_error(8134)
        found = _EXACT[operator](first, second)
        unit = Decimal(1).scaleb(-(type_.scale or 0))
        found = found.quantize(unit, ROUND_DOWN if operator == "/" else ROUND_HALF_UP)
        if abs(found) >= Decimal(10) ** ((type_.precision or 0) - (type_.scale or 0)):
            raise sql_error(8115, "expression", "numeric")
    return Value(type_, found)


_EXACT: Mapping[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
}


def _digits(type_: SqlType) -> tuple[int, int]:
    if type_.precision is not None:
        return type_.precision, type_.scale or 0
    return _DIGITS[type_.name]


def _exact_type(operator: str, left: tuple[int, int], right: tuple[int, int]) -> SqlType:
    """Precision and scale of a result, as the page "Precision, scale, and length" has them."""
    (p1, s1), (p2, s2) = left, right
    if operator in ("+", "-"):
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    elif operator == "*":
        precision, scale = p1 + p2 + 1, s1 + s2
    elif operator == "/":
        scale = max(_MIN_SCALE, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    else:
        scale = max(s1, s2)
        precision = min(p1 - s1, p2 - s2) + scale
    if precision > _LARGEST:
        scale = max(min(scale, _LARGEST - (precision - scale)), min(scale, _MIN_SCALE))
        precision = _LARGEST
    return SqlType("decimal", precision=precision, scale=scale)
