"""CAST and CONVERT (implicit ones too): values from one T-SQL type to another. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from uuid import UUID

from engine.tsql.messages import SqlError, sql_error
from engine.tsql.types import INTEGERS, MAX, UNICODE, Scalar, SqlType, Value

_EPOCH = datetime(1900, 1, 1)
"""Day 0 of datetime as a number."""
_MONEY_SCALE = 4
_GUID_BYTES = 16

_DATE = r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})"
_COMPACT = r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})"
_US = r"(?P<month>\d{1,2})[-/.](?P<day>\d{1,2})[-/.](?P<year>\d{4})"
_TIME = (
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:[.:](?P<fraction>\d{1,9}))?)?)?"
    r"\s*(?P<half>[AaPp][Mm])?"
)
_ZONE = r"\s*(?P<zone>[Zz]|[+-]\d{2}:?\d{2})?"
_DAYS = (_DATE, _COMPACT, _US)
_FORMS = (
    *(re.compile(rf"\s*{day}(?:[T\s]\s*{_TIME})?{_ZONE}\s*") for day in _DAYS),
    re.compile(rf"\s*{_TIME}{_ZONE}\s*"),
)

_STYLES: Mapping[int, str] = {
    0: "%b %e %Y %l:%M%p",
    100: "%b %e %Y %l:%M%p",
    101: "%m/%d/%Y",
    102: "%Y.%m.%d",
    103: "%d/%m/%Y",
    104: "%d.%m.%Y",
    105: "%d-%m-%Y",
    108: "%H:%M:%S",
    110: "%m-%d-%Y",
    111: "%Y/%m/%d",
    112: "%Y%m%d",
    114: "%H:%M:%S:%f",
    20: "%Y-%m-%d %H:%M:%S",
    120: "%Y-%m-%d %H:%M:%S",
    21: "%Y-%m-%d %H:%M:%S.%f",
    25: "%Y-%m-%d %H:%M:%S.%f",
    121: "%Y-%m-%d %H:%M:%S.%f",
    23: "%Y-%m-%d",
    126: "%Y-%m-%dT%H:%M:%S.%f",
    127: "%Y-%m-%dT%H:%M:%S.%f",
}


def convert(value: Value, to: SqlType, style: int | None = None) -> Value:
    """The value in another type. Raises SqlError with the number that the original has for what fails."""
    if value.value is None:
        return Value(to, None)
    if value.type == to and style is None:
        return value
    target = _TARGETS.get(to.name)
    if target is None:
        if to.is_string:
            return Value(to, _fitted_text(_text(value, style, to), to, value))
        if to.is_binary:
            return Value(to, _fitted_bytes(_bytes(value, style, to), to, value))
        return Value(to, value.value)
    return Value(to, target(value, to))


def as_text(value: Value) -> str:
    """A value that is not NULL as PRINT and messages show it."""
    return _text(value, None, SqlType("nvarchar", MAX))


# Numbers


def _integer(value: Value, to: SqlType) -> int:
    raw = value.value
    if isinstance(raw, str):
        text = raw.strip()
        if not re.fullmatch(r"[+-]?\d*", text) or text in ("+", "-"):
            raise sql_error(245, value.type.name, raw, to.name)
        number = int(text or "0")
        if to.name != "bigint" and not -(2**31) <= number < 2**31:
            raise sql_error(8115, "expression", to.name)
    elif isinstance(raw, bytes):
        width = {"bigint": 8, "int": 4, "smallint": 2, "tinyint": 1}[to.name]
        number = int.from_bytes(raw[-width:].rjust(width, b"\0"), "big", signed=to.name != "tinyint")
    elif isinstance(raw, bool | int | Decimal) or (isinstance(raw, float) and math.isfinite(raw)):
        number = int(raw)
    elif isinstance(raw, datetime):
        number = round((raw.replace(tzinfo=None) - _EPOCH) / timedelta(days=1))
    else:
        raise sql_error(529, value.type.name, to.name)
    return checked_integer(number, to)


def checked_integer(number: int, to: SqlType) -> int:
    """The number when the type holds it. Raises 8115 (220 for the small ones)."""
    low, high = INTEGERS[to.name]
    if low <= number <= high:
        return number
    if to.name in ("tinyint", "smallint"):
        raise sql_error(220, to.name, number)
    raise sql_error(8115, "expression", to.name)


def _bit(value: Value, to: SqlType) -> bool:
    raw = value.value
    if isinstance(raw, str):
        text = raw.strip().lower()
        if text in ("true", "false"):
            return text == "true"
        if re.fullmatch(r"[+-]?\d+", text):
            return int(text) != 0
        raise sql_error(245, value.type.name, raw, to.name)
    if isinstance(raw, bytes):
        return any(raw[-1:])
    if isinstance(raw, int | float | Decimal):
        return raw != 0
    raise sql_error(529, value.type.name, to.name)


def _decimal(value: Value, to: SqlType) -> Decimal:
    raw = value.value
    if isinstance(raw, str):
        try:
            number = Decimal(raw.strip() or "x")
        except InvalidOperation:
            raise sql_error(8114, value.type.name, to.name) from None
    elif isinstance(raw, bool | int | Decimal):
        number = Decimal(raw)
    elif isinstance(raw, float):
        number = Decimal(repr(raw))
    elif isinstance(raw, datetime):
        number = Decimal((raw.replace(tzinfo=None) - _EPOCH) / timedelta(days=1))
    else:
        raise sql_error(529, value.type.name, to.name)
    if not number.is_finite():
        raise sql_error(8114, value.type.name, to.name)
    return checked_decimal(number, to)


def checked_decimal(number: Decimal, to: SqlType) -> Decimal:
    """The number rounded to the type's scale. Raises 8115 where it has too many digits before the point."""
    precision, scale = (to.precision, to.scale) if to.precision is not None else (19, _MONEY_SCALE)
    with localcontext(prec=80):
        rounded = number.quantize(Decimal(1).scaleb(-(scale or 0)), ROUND_HALF_UP)
        if abs(rounded) >= Decimal(10) ** (precision - (scale or 0)):
            raise sql_error(8115, "expression", to.name)
        return rounded


def _float(value: Value, to: SqlType) -> float:
    raw = value.value
    if isinstance(raw, str):
        try:
            return float(raw.strip() or "0")
        except ValueError:
            raise sql_error(8114, value.type.name, to.name) from None
    if isinstance(raw, bool | int | float | Decimal):
        return float(raw)
    if isinstance(raw, datetime):
        return (raw.replace(tzinfo=None) - _EPOCH) / timedelta(days=1)
    raise sql_error(529, value.type.name, to.name)


# Dates and times


def _datetime(value: Value, to: SqlType) -> datetime:
    raw = value.value
    if isinstance(raw, datetime):
        moment = raw.astimezone(UTC).replace(tzinfo=None) if raw.tzinfo else raw
    elif isinstance(raw, date):
        moment = datetime(raw.year, raw.month, raw.day)
    elif isinstance(raw, time):
        moment = datetime.combine(_EPOCH, raw)
    elif isinstance(raw, str):
        parsed = _parsed(raw)
        moment = parsed.astimezone(UTC).replace(tzinfo=None) if parsed.tzinfo else parsed
    elif isinstance(raw, bool | int | float | Decimal) and to.name in ("datetime", "smalldatetime"):
        moment = moment_plus_days(_EPOCH, raw)
    else:
        raise sql_error(529, value.type.name, to.name)
    return rounded_moment(moment, to)


def moment_plus_days(moment: datetime, days: Decimal | float) -> datetime:
    """``GETDATE() - 1`` and the like. Raises 8115 beyond the calendar."""
    try:
        return moment + timedelta(days=float(days))
    except OverflowError:
        raise sql_error(8115, "expression", "datetime") from None


def rounded_moment(moment: datetime, to: SqlType) -> datetime:
    """As the type keeps it: datetime in steps of 1/300 s, shown as milliseconds; smalldatetime in minutes."""
    if to.name == "smalldatetime":
        return (moment + timedelta(seconds=30)).replace(second=0, microsecond=0)
    if to.name != "datetime":
        digits = min(to.scale if to.scale is not None else 7, 6)
        step = 10 ** (6 - digits)
        return moment + timedelta(
            microseconds=(moment.microsecond + step // 2) // step * step - moment.microsecond
        )
    ticks = round(moment.microsecond * 300 / 1_000_000)
    milliseconds = round(ticks * 1000 / 300)
    return moment.replace(microsecond=0) + timedelta(milliseconds=milliseconds)


def _offset(value: Value, to: SqlType) -> datetime:
    raw = value.value
    if isinstance(raw, datetime) and raw.tzinfo:
        return rounded_moment(raw, to)
    if isinstance(raw, str):
        parsed = _parsed(raw)
        return rounded_moment(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC), to)
    return _datetime(value, SqlType("datetime2", scale=to.scale)).replace(tzinfo=UTC)


def _date(value: Value, to: SqlType) -> date:
    if isinstance(value.value, time | int | float | Decimal):
        raise sql_error(529, value.type.name, to.name)
    return _datetime(value, SqlType("datetime2", scale=7)).date()


def _time(value: Value, to: SqlType) -> time:
    if isinstance(value.value, time):
        return value.value
    if isinstance(value.value, int | float | Decimal):
        raise sql_error(529, value.type.name, to.name)
    return _datetime(value, SqlType("datetime2", scale=to.scale)).time()


def _parsed(text: str) -> datetime:
    """A moment in ISO 8601, in ODBC's form, unseparated, or month first. Raises 241."""
    if not text.strip():
        return _EPOCH
    for form in _FORMS:
        if match := form.fullmatch(text):
            try:
                return _moment(match.groupdict())
            except ValueError:
                break
    raise sql_error(241)


def _moment(parts: Mapping[str, str | None]) -> datetime:
    hour = int(parts["hour"] or 0)
    if half := parts["half"]:
        if not 1 <= hour <= 12:
            raise ValueError
        hour = hour % 12 + (12 if half.lower() == "pm" else 0)
    digits = f"{parts['fraction'] or '':0<7}"[:7]
    moment = datetime(
        int(parts.get("year") or _EPOCH.year),
        int(parts.get("month") or 1),
        int(parts.get("day") or 1),
        hour,
        int(parts["minute"] or 0),
        int(parts["second"] or 0),
        int(digits[:6]),
    )
    zone = parts["zone"]
    if not zone:
        return moment
    form = "%z"
    return moment.replace(tzinfo=datetime.strptime(zone.upper(), form).tzinfo)


# Text and bytes


def _text(value: Value, style: int | None, to: SqlType) -> str:
    raw = value.value
    match raw:
        case str():
            return raw
        case bool():
            return "1" if raw else "0"
        case int():
            return str(raw)
        case Decimal():
            return f"{raw:.2f}" if value.type.name in ("money", "smallmoney") else f"{raw:f}"
        case float():
            return f"{raw:.6g}" if style in (None, 0) else repr(raw)
        case bytes():
            return _hex_or_text(raw, style, to)
        case datetime():
            return _moment_text(raw, value.type, style)
        case date():
            return _date_text(raw, style)
        case time():
            return _with_fraction(raw.strftime("%H:%M:%S"), raw.microsecond, value.type.scale)
    raise sql_error(529, value.type.name, to.name)


def _date_text(raw: date, style: int | None) -> str:
    form = None if style is None or style in (0, 100) else _STYLES.get(style)
    return raw.isoformat() if form is None else raw.strftime(form)


def _hex_or_text(raw: bytes, style: int | None, to: SqlType) -> str:
    if style in (1, 2):
        return ("0x" if style == 1 else "") + raw.hex().upper()
    if to.name in UNICODE:
        return raw[: len(raw) // 2 * 2].decode("utf-16-le", "replace")
    return raw.decode("cp1252", "replace")


def _moment_text(raw: datetime, type_: SqlType, style: int | None) -> str:
    if style is None:
        style = 0 if type_.name in ("datetime", "smalldatetime") else 121
    form = _STYLES.get(style)
    if form is None:
        raise sql_error(50040, f"CONVERT with style {style}", f"Supported are {sorted(_STYLES)}.")
    scale = {"datetime": 3, "smalldatetime": 0}.get(type_.name, type_.scale)
    form = form.replace("%e", f"{raw.day:2d}").replace("%l", f"{(raw.hour + 11) % 12 + 1:2d}")
    seconds, has_fraction, rest = form.partition("%f")
    text = raw.strftime(seconds.rstrip(".:") if has_fraction else seconds)
    if has_fraction:
        text = _with_fraction(text, raw.microsecond, scale, ":" if style == 114 else ".")
    text += rest
    if raw.tzinfo and style not in (101, 102, 103, 104, 105, 108, 110, 111, 112, 114, 23):
        offset = raw.strftime("%z")
        text += f" {offset[:3]}:{offset[3:5]}"
    return text


def _with_fraction(text: str, microsecond: int, scale: int | None, mark: str = ".") -> str:
    digits = 7 if scale is None else scale
    return text if digits == 0 else f"{text}{mark}{f'{microsecond:06d}0'[:digits]}"


def _fitted_text(text: str, to: SqlType, source: Value) -> str:
    if to.length in (None, MAX):
        return text
    assert to.length is not None
    if len(text) > to.length and (source.type.is_number or source.type.name == "uniqueidentifier"):
        if source.type.is_integer and to.name not in UNICODE:
            return "*"
        raise sql_error(8115, "expression", to.name)
    return text[: to.length].ljust(to.length if to.name in ("char", "nchar") else 0)


def _bytes(value: Value, style: int | None, to: SqlType) -> bytes:
    raw = value.value
    match raw:
        case bytes():
            return raw
        case str() if style in (1, 2):
            digits = raw[2:] if style == 1 else raw
            valid = style == 2 or raw[:2].lower() == "0x"
            if not valid or not re.fullmatch(r"(?:[0-9a-fA-F]{2})*", digits):
                raise sql_error(8114, value.type.name, to.name)
            return bytes.fromhex(digits)
        case str() if value.type.name == "uniqueidentifier":
            return UUID(raw).bytes_le
        case str():
            return raw.encode("utf-16-le" if value.type.name in UNICODE else "cp1252", "replace")
        case bool():
            return bytes([raw])
        case int():
            width = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8}[value.type.name]
            return raw.to_bytes(width, "big", signed=value.type.name != "tinyint")
    raise sql_error(529, value.type.name, to.name)


def _fitted_bytes(raw: bytes, to: SqlType, source: Value) -> bytes:
    """Numbers keep their last bytes and are filled from the left; all else the first, from the right."""
    if to.length in (None, MAX):
        return raw
    assert to.length is not None
    fixed = to.length if to.name == "binary" else 0
    if source.type.is_integer:
        return raw[-to.length :].rjust(fixed, b"\0")
    return raw[: to.length].ljust(fixed, b"\0")


def _guid(value: Value, to: SqlType) -> str:
    raw = value.value
    try:
        if isinstance(raw, str):
            return str(UUID(raw.strip())).upper()
        if isinstance(raw, bytes):
            return str(UUID(bytes_le=raw[:_GUID_BYTES].ljust(_GUID_BYTES, b"\0"))).upper()
    except ValueError:
        raise sql_error(8169) from None
    raise sql_error(529, value.type.name, to.name)


_TARGETS: Mapping[str, Callable[[Value, SqlType], Scalar]] = {
    "bit": _bit,
    "tinyint": _integer,
    "smallint": _integer,
    "int": _integer,
    "bigint": _integer,
    "decimal": _decimal,
    "numeric": _decimal,
    "money": _decimal,
    "smallmoney": _decimal,
    "float": _float,
    "real": _float,
    "datetime": _datetime,
    "datetime2": _datetime,
    "smalldatetime": _datetime,
    "datetimeoffset": _offset,
    "date": _date,
    "time": _time,
    "uniqueidentifier": _guid,
}


def try_convert(value: Value, to: SqlType, style: int | None = None) -> Value:
    """TRY_CAST, TRY_CONVERT: NULL where the conversion fails; one that is not allowed still raises."""
    try:
        return convert(value, to, style)
    except SqlError as error:
        if error.message.number == 529:
            raise
        return Value(to, None)
