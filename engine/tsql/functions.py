"""T-SQL's scalar functions over values. Pure; what a session must answer is in `engine.tsql.evaluation`."""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal, localcontext
from uuid import uuid4

from engine.tsql.conversion import as_text, convert, rounded_moment
from engine.tsql.messages import sql_error
from engine.tsql.net_formats import formatted_moment, formatted_number
from engine.tsql.operators import compare, like
from engine.tsql.types import (
    BIGINT,
    DATE,
    DATETIME,
    DATETIME2,
    FLOAT,
    GUID,
    INT,
    MAX,
    SYSNAME,
    TEXT,
    UNICODE,
    SqlType,
    Value,
    higher,
)  # fmt: skip

Arguments = Sequence[Value]
_LONGEST_NAME = 128
_MONTHS_A_YEAR = 12
_UNIT_ALIASES: Mapping[str, str] = {
    "yy": "year", "yyyy": "year", "qq": "quarter", "q": "quarter", "mm": "month", "m": "month",
    "dy": "dayofyear",
    "y": "dayofyear", "dd": "day", "d": "day", "wk": "week", "ww": "week", "dw": "weekday", "w": "weekday",
    "hh": "hour", "mi": "minute", "n": "minute", "ss": "second", "s": "second", "ms": "millisecond",
    "mcs": "microsecond", "ns": "nanosecond", "dayofweek": "weekday",
}  # fmt: skip
_LENGTHS: Mapping[str, timedelta] = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "dayofyear": timedelta(days=1),
    "weekday": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1),
    "microsecond": timedelta(microseconds=1),
}
UNITS = frozenset({"year", "quarter", "month", "nanosecond", *_LENGTHS, *_UNIT_ALIASES})
"""Dateparts that are understood."""
_QUOTES: Mapping[str, tuple[str, str]] = {
    "[": ("[", "]"), "]": ("[", "]"), "'": ("'", "'"), '"': ('"', '"'), "(": ("(", ")"), ")": ("(", ")"),
    "<": ("<", ">"), ">": ("<", ">"), "{": ("{", "}"), "}": ("{", "}"), "`": ("`", "`"),
}  # fmt: skip


def _text(value: Value) -> str:
    return str(convert(value, TEXT).value)


def _number(value: Value) -> int:
    found = convert(value, BIGINT).value
    assert isinstance(found, int)
    return found


def _any_null(arguments: Arguments) -> bool:
    return any(argument.is_null for argument in arguments)


def _string_type(value: Value, length: int | None = None) -> SqlType:
    name = "nvarchar" if value.type.name in UNICODE or not value.type.is_string else "varchar"
    return SqlType(name, value.type.length if length is None and value.type.is_string else length or MAX)


def _left(arguments: Arguments) -> Value:
    return _part(arguments, "LEFT", lambda text, count: text[:count])


def _right(arguments: Arguments) -> Value:
    return _part(arguments, "RIGHT", lambda text, count: text[max(0, len(text) - count) :])


def _part(arguments: Arguments, name: str, cut: Callable[[str, int], str]) -> Value:
    type_ = _string_type(arguments[0])
    if _any_null(arguments):
        return Value(type_, None)
    count = _number(arguments[1])
    if count < 0:
        raise sql_error(536, name.lower())
    return Value(type_, cut(_text(arguments[0]), count))


def _substring(arguments: Arguments) -> Value:
    source = arguments[0]
    type_ = SqlType("varbinary", source.type.length) if source.type.is_binary else _string_type(source)
    if _any_null(arguments):
        return Value(type_, None)
    start = _number(arguments[1])
    length = _number(arguments[2]) if len(arguments) > 2 else 2**31
    if length < 0:
        raise sql_error(536, "substring")
    whole = source.value if isinstance(source.value, bytes) else _text(source)
    return Value(type_, whole[max(0, start - 1) : max(0, start - 1 + length)])


def _len(arguments: Arguments) -> Value:
    [value] = arguments
    if value.is_null:
        return Value(INT, None)
    return Value(INT, len(value.value) if isinstance(value.value, bytes) else len(_text(value).rstrip(" ")))


def _data_length(arguments: Arguments) -> Value:
    [value] = arguments
    if value.is_null:
        return Value(INT, None)
    widths = {"bit": 1, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "real": 4, "date": 3,
              "smalldatetime": 4, "uniqueidentifier": 16}  # fmt: skip
    if isinstance(value.value, bytes):
        return Value(INT, len(value.value))
    if value.type.is_string:
        return Value(INT, len(_text(value)) * (2 if value.type.name in UNICODE else 1))
    return Value(INT, widths.get(value.type.name, 8))


def _replace(arguments: Arguments) -> Value:
    type_ = _string_type(arguments[0], MAX)
    if _any_null(arguments):
        return Value(type_, None)
    text, old, new = (_text(argument) for argument in arguments)
    return Value(type_, re.sub(re.escape(old), lambda _: new, text, flags=re.IGNORECASE) if old else text)


def _char_index(arguments: Arguments) -> Value:
    if _any_null(arguments):
        return Value(INT, None)
    start = max(0, _number(arguments[2]) - 1) if len(arguments) > 2 else 0
    return Value(INT, _text(arguments[1]).casefold().find(_text(arguments[0]).casefold(), start) + 1)


def _pattern_index(arguments: Arguments) -> Value:
    if _any_null(arguments):
        return Value(INT, None)
    pattern, text = _text(arguments[0]), _text(arguments[1])
    begin, end = pattern.startswith("%"), pattern.endswith("%")
    for start in range(len(text) + 1) if begin else (0,):
        for stop in range(start, len(text) + 1) if end else (len(text),):
            if like(Value(TEXT, text[start:stop]), Value(TEXT, pattern.strip("%"))):
                return Value(INT, start + 1)
    return Value(INT, 0)


def _trim(arguments: Arguments, strip: Callable[[str], str]) -> Value:
    [value] = arguments
    return Value(_string_type(value), None if value.is_null else strip(_text(value)))


def _case(change: Callable[[str], str]) -> Callable[[Arguments], Value]:
    return lambda arguments: _trim(arguments, change)


def _concat(arguments: Arguments) -> Value:
    return Value(TEXT, "".join("" if a.is_null else as_text(a) for a in arguments))


def _concat_ws(arguments: Arguments) -> Value:
    separator = "" if arguments[0].is_null else _text(arguments[0])
    return Value(TEXT, separator.join(as_text(a) for a in arguments[1:] if not a.is_null))


def _stuff(arguments: Arguments) -> Value:
    type_ = _string_type(arguments[0], MAX)
    if _any_null(arguments[:3]):
        return Value(type_, None)
    text, start, length = _text(arguments[0]), _number(arguments[1]), _number(arguments[2])
    if not 1 <= start <= len(text) or length < 0:
        return Value(type_, None)
    inserted = "" if arguments[3].is_null else _text(arguments[3])
    return Value(type_, text[: start - 1] + inserted + text[start - 1 + length :])


def _repeat(arguments: Arguments) -> Value:
    type_ = _string_type(arguments[0], MAX)
    if _any_null(arguments) or _number(arguments[1]) < 0:
        return Value(type_, None)
    return Value(type_, (_text(arguments[0]) * _number(arguments[1]))[:8000])


def _space(arguments: Arguments) -> Value:
    return _repeat([Value(SqlType("varchar", 1), " "), *arguments])


def _quote_name(arguments: Arguments) -> Value:
    type_ = SqlType("nvarchar", 258)
    if _any_null(arguments) or len(_text(arguments[0])) > _LONGEST_NAME:
        return Value(type_, None)
    quotes = _QUOTES.get(_text(arguments[1])[:1] if len(arguments) > 1 else "[")
    if quotes is None:
        return Value(type_, None)
    opening, closing = quotes
    return Value(type_, opening + _text(arguments[0]).replace(closing, closing * 2) + closing)


def _character(arguments: Arguments) -> Value:
    if arguments[0].is_null or not 0 <= _number(arguments[0]) <= 255:
        return Value(SqlType("varchar", 1), None)
    return Value(SqlType("varchar", 1), bytes([_number(arguments[0])]).decode("cp1252", "replace"))


def _unicode_character(arguments: Arguments) -> Value:
    if arguments[0].is_null or not 0 <= _number(arguments[0]) <= 0xFFFF:
        return Value(SqlType("nvarchar", 1), None)
    return Value(SqlType("nvarchar", 1), chr(_number(arguments[0])))


def _code(arguments: Arguments) -> Value:
    text = "" if arguments[0].is_null else _text(arguments[0])
    return Value(INT, ord(text[0]) if text else None)


def _str(arguments: Arguments) -> Value:
    if _any_null(arguments):
        return Value(SqlType("varchar", 10), None)
    width = _number(arguments[1]) if len(arguments) > 1 else 10
    digits = _number(arguments[2]) if len(arguments) > 2 else 0
    number = convert(arguments[0], SqlType("decimal", precision=38, scale=max(0, min(16, digits)))).value
    text = f"{number:f}".rjust(width)
    return Value(SqlType("varchar", width), text if len(text) <= width else "*" * width)


def _is_numeric(arguments: Arguments) -> Value:
    [value] = arguments
    if value.type.is_number:
        return Value(INT, int(not value.is_null))
    text = "" if value.is_null else _text(value).strip()
    return Value(INT, int(re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text) is not None))


def _is_date(arguments: Arguments) -> Value:
    from engine.tsql.conversion import try_convert

    [value] = arguments
    good = not value.is_null and value.type.is_string and not try_convert(value, DATETIME).is_null
    return Value(INT, int(good or value.type.name in ("datetime", "smalldatetime")))


# Numbers


def _numeric(value: Value) -> Value:
    return value if value.type.is_number else convert(value, FLOAT)


def _round_to(mode: str) -> Callable[[Arguments], Value]:
    def call(arguments: Arguments) -> Value:
        value = _numeric(arguments[0])
        if value.is_null or isinstance(value.value, int):
            return value
        if isinstance(value.value, float):
            return Value(
                FLOAT, float(math.floor(value.value) if mode == ROUND_FLOOR else math.ceil(value.value))
            )
        assert isinstance(value.value, Decimal)
        return Value(SqlType("decimal", precision=38, scale=0), value.value.to_integral_value(mode))

    return call


def _round(arguments: Arguments) -> Value:
    value = _numeric(arguments[0])
    if _any_null(arguments):
        return Value(value.type, None)
    places = _number(arguments[1]) if len(arguments) > 1 else 0
    mode = ROUND_DOWN if len(arguments) > 2 and _number(arguments[2]) else ROUND_HALF_UP
    raw = value.value
    assert isinstance(raw, int | float | Decimal)
    with localcontext(prec=80):
        exact = Decimal(repr(raw)) if isinstance(raw, float) else Decimal(raw)
        rounded = exact.quantize(Decimal(1).scaleb(-places), mode)
    return convert(Value(SqlType("decimal", precision=38, scale=max(0, places)), rounded), value.type)


def _absolute(arguments: Arguments) -> Value:
    value = _numeric(arguments[0])
    return value if value.is_null else Value(value.type, abs(value.value))  # type: ignore[arg-type]


def _sign(arguments: Arguments) -> Value:
    value = _numeric(arguments[0])
    if value.is_null:
        return value
    raw = value.value
    return convert(Value(INT, (raw > 0) - (raw < 0)), value.type)  # type: ignore[operator]


def _of_float(function: Callable[..., float]) -> Callable[[Arguments], Value]:
    def call(arguments: Arguments) -> Value:
        numbers = [convert(argument, FLOAT).value for argument in arguments]
        if any(number is None for number in numbers):
            return Value(FLOAT, None)
        try:
            return Value(FLOAT, function(*numbers))
        except (ValueError, OverflowError) as error:
            raise sql_error(8115, "expression", "float") from error

    return call


def _power(arguments: Arguments) -> Value:
    base = _numeric(arguments[0])
    raised = _of_float(math.pow)(arguments)
    return convert(raised, base.type) if not base.type.is_float else raised


# Choices


def _coalesce(arguments: Arguments) -> Value:
    type_ = arguments[0].type
    for argument in arguments[1:]:
        type_ = higher(type_, argument.type)
    found = next((argument for argument in arguments if not argument.is_null), arguments[0])
    return convert(found, type_)


def _is_null(arguments: Arguments) -> Value:
    first, second = arguments
    if not first.is_null:
        return first
    untyped = first.type == INT and second.type != INT
    return second if untyped else convert(second, first.type)


def _null_if(arguments: Arguments) -> Value:
    first, second = arguments
    return Value(first.type, None) if compare(first, second) == 0 else first


def _choose(arguments: Arguments) -> Value:
    index = None if arguments[0].is_null else _number(arguments[0])
    return (
        arguments[index]
        if index is not None and 1 <= index < len(arguments)
        else Value(arguments[-1].type, None)
    )


def _extreme(wanted: int) -> Callable[[Arguments], Value]:
    def call(arguments: Arguments) -> Value:
        there = [argument for argument in arguments if not argument.is_null]
        found = there[0] if there else arguments[0]
        for argument in there[1:]:
            if compare(argument, found) == wanted:
                found = argument
        return found

    return call


# Dates


def unit(name: str) -> str:
    """A datepart by its full name. Raises 155."""
    full = _UNIT_ALIASES.get(name.lower(), name.lower())
    if full not in UNITS:
        raise sql_error(155, name, "datepart")
    return full


def _moment(value: Value) -> datetime:
    if isinstance(value.value, datetime):
        return value.value
    if isinstance(value.value, time):
        return datetime.combine(date(1900, 1, 1), value.value)
    found = convert(value, DATETIME2 if value.type.is_string or value.type.name == "date" else DATETIME).value
    assert isinstance(found, datetime)
    return found


def _date_add(arguments: Arguments) -> Value:
    part, count, source = unit(_text(arguments[0])), arguments[1], arguments[2]
    type_ = DATETIME if source.type.is_string or source.type.is_number else source.type
    if count.is_null or source.is_null:
        return Value(type_, None)
    number, moment = _number(count), _moment(source)
    try:
        if part in ("year", "quarter", "month"):
            moved = _months_later(moment, number * {"year": 12, "quarter": 3, "month": 1}[part])
        elif part == "nanosecond":
            moved = moment + timedelta(microseconds=number // 1000)
        else:
            moved = moment + number * _LENGTHS[part]
    except (OverflowError, ValueError):
        raise sql_error(517, type_.name) from None
    if type_.name == "date":
        return Value(type_, moved.date())
    if type_.name == "time":
        return Value(type_, moved.time())
    return Value(type_, rounded_moment(moved, type_))


def _months_later(moment: datetime, months: int) -> datetime:
    index = moment.year * _MONTHS_A_YEAR + moment.month - 1 + months
    year, month = divmod(index, _MONTHS_A_YEAR)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1]))


def _date_diff(arguments: Arguments, big: bool = False) -> Value:
    """Boundaries of the datepart that are crossed."""
    type_ = BIGINT if big else INT
    part, start, end = unit(_text(arguments[0])), arguments[1], arguments[2]
    if start.is_null or end.is_null:
        return Value(type_, None)
    count = _boundary(_moment(end).replace(tzinfo=None), part) - _boundary(
        _moment(start).replace(tzinfo=None), part
    )
    if not big and not -(2**31) <= count < 2**31:
        raise sql_error(535, "datediff")
    return Value(type_, count)


def _boundary(moment: datetime, part: str) -> int:
    if part == "year":
        return moment.year
    if part in ("quarter", "month"):
        return (moment.year * _MONTHS_A_YEAR + moment.month - 1) // (3 if part == "quarter" else 1)
    since = moment - datetime(1, 1, 1)
    if part == "week":  # weeks begin on Sunday, and 0001-01-01 was a Monday
        return (since + timedelta(days=1)) // _LENGTHS["week"]
    if part == "nanosecond":
        return since // _LENGTHS["microsecond"] * 1000
    return since // _LENGTHS[part]


def _date_part(arguments: Arguments) -> Value:
    part, source = unit(_text(arguments[0])), arguments[1]
    if source.is_null:
        return Value(INT, None)
    moment = _moment(source)
    found = {
        "year": moment.year,
        "quarter": (moment.month + 2) // 3,
        "month": moment.month,
        "dayofyear": moment.timetuple().tm_yday,
        "day": moment.day,
        "weekday": moment.isoweekday() % 7 + 1,
        "hour": moment.hour,
        "minute": moment.minute,
        "second": moment.second,
        "millisecond": moment.microsecond // 1000,
        "microsecond": moment.microsecond,
        "nanosecond": moment.microsecond * 1000,
        "week": (moment.timetuple().tm_yday + datetime(moment.year, 1, 1).isoweekday() % 7 - 1) // 7 + 1,
    }
    return Value(INT, found[part])


def _part_of(part: str) -> Callable[[Arguments], Value]:
    return lambda arguments: _date_part([Value(SYSNAME, part), *arguments])


def _date_name(arguments: Arguments) -> Value:
    type_ = SqlType("nvarchar", 30)
    if arguments[1].is_null:
        return Value(type_, None)
    part = unit(_text(arguments[0]))
    if part in ("month", "weekday"):
        return Value(type_, _moment(arguments[1]).strftime("%B" if part == "month" else "%A"))
    return Value(type_, str(_date_part(arguments).value))


def _end_of_month(arguments: Arguments) -> Value:
    if _any_null(arguments):
        return Value(DATE, None)
    moment = _months_later(
        _moment(arguments[0]).replace(day=1), _number(arguments[1]) if len(arguments) > 1 else 0
    )
    return Value(DATE, moment.replace(day=monthrange(moment.year, moment.month)[1]).date())


def _date_from_parts(arguments: Arguments) -> Value:
    if _any_null(arguments):
        return Value(DATE, None)
    try:
        return Value(DATE, date(*(_number(argument) for argument in arguments)))
    except ValueError:
        raise sql_error(241) from None


def _format(arguments: Arguments) -> Value:
    """Of dates and numbers, as culture en-US has it, which is the only one."""
    value, type_ = arguments[0], SqlType("nvarchar", 4000)
    if _any_null(arguments):
        return Value(type_, None)
    pattern = _text(arguments[1])
    if len(arguments) > 2 and _text(arguments[2]).lower() != "en-us":
        raise sql_error(50040, f"FORMAT for culture '{_text(arguments[2])}'", "en-US is there.")
    if not value.type.is_number:
        return Value(type_, formatted_moment(_moment(value), pattern))
    return Value(type_, formatted_number(Decimal(str(value.value)), pattern))


FUNCTIONS: Mapping[str, tuple[int, int, Callable[[Arguments], Value]]] = {
    "LEFT": (2, 2, _left),
    "RIGHT": (2, 2, _right),
    "SUBSTRING": (2, 3, _substring),
    "LEN": (1, 1, _len),
    "DATALENGTH": (1, 1, _data_length),
    "REPLACE": (3, 3, _replace),
    "CHARINDEX": (2, 3, _char_index),
    "PATINDEX": (2, 2, _pattern_index),
    "LTRIM": (1, 1, lambda a: _trim(a, lambda text: text.lstrip(" "))),
    "RTRIM": (1, 1, lambda a: _trim(a, lambda text: text.rstrip(" "))),
    "TRIM": (1, 1, lambda a: _trim(a, lambda text: text.strip(" "))),
    "UPPER": (1, 1, _case(str.upper)),
    "LOWER": (1, 1, _case(str.lower)),
    "REVERSE": (1, 1, _case(lambda text: text[::-1])),
    "CONCAT": (1, 254, _concat),
    "CONCAT_WS": (2, 254, _concat_ws),
    "STUFF": (4, 4, _stuff),
    "REPLICATE": (2, 2, _repeat),
    "SPACE": (1, 1, _space),
    "QUOTENAME": (1, 2, _quote_name),
    "CHAR": (1, 1, _character),
    "NCHAR": (1, 1, _unicode_character),
    "ASCII": (1, 1, _code),
    "UNICODE": (1, 1, _code),
    "STR": (1, 3, _str),
    "ISNUMERIC": (1, 1, _is_numeric),
    "ISDATE": (1, 1, _is_date),
    "CEILING": (1, 1, _round_to(ROUND_CEILING)),
    "FLOOR": (1, 1, _round_to(ROUND_FLOOR)),
    "ROUND": (2, 3, _round),
    "ABS": (1, 1, _absolute),
    "SIGN": (1, 1, _sign),
    "POWER": (2, 2, _power),
    "SQRT": (1, 1, _of_float(math.sqrt)),
    "COALESCE": (1, 254, _coalesce),
    "ISNULL": (2, 2, _is_null),
    "NULLIF": (2, 2, _null_if),
    "CHOOSE": (2, 254, _choose),
    "GREATEST": (1, 254, _extreme(1)),
    "LEAST": (1, 254, _extreme(-1)),
    "DATEADD": (3, 3, _date_add),
    "DATEDIFF": (3, 3, _date_diff),
    "DATEDIFF_BIG": (3, 3, lambda a: _date_diff(a, True)),
    "DATEPART": (2, 2, _date_part),
    "DATENAME": (2, 2, _date_name),
    "YEAR": (1, 1, _part_of("year")),
    "MONTH": (1, 1, _part_of("month")),
    "DAY": (1, 1, _part_of("day")),
    "EOMONTH": (1, 2, _end_of_month),
    "DATEFROMPARTS": (3, 3, _date_from_parts),
    "FORMAT": (2, 3, _format),
    "NEWID": (0, 0, lambda _: Value(GUID, str(uuid4()).upper())),
}
"""Least and most arguments, and the function."""

RANDOM = frozenset({"NEWID"})
"""Functions with another value for each row."""
