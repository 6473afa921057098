"""T-SQL's functions of columns, as PostgreSQL and Spark say them. Pure.

``dialect`` is "postgres" or "spark". Arguments are given as they stand in the tree, and copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlglot import exp

from engine.tsql.conversion import convert
from engine.tsql.functions import unit
from engine.tsql.messages import sql_error
from engine.tsql.net_formats import is_of_numbers, source_pattern, spark_pattern
from engine.tsql.types import DATETIME2, TEXT, Value

TEXT_CALLS = frozenset({"to_char", "date_format", "overlay", "format_number", "lpad"})
"""Functions of the targets that give text."""


def said_call(name: str, arguments: list[exp.Expr], dialect: str) -> exp.Expr | None:
    """A function, by its name in upper case, of columns; None where the target has it as it stands.

    Raises 50040, 155.
    """
    copies = [argument.copy() for argument in arguments]
    match name:
        case "DATEPART" | "YEAR" | "MONTH" | "DAY":
            part, source = (arguments[0].name, copies[1]) if name == "DATEPART" else (name, copies[0])
            return _date_part(unit(part), source, dialect)
        case "DATEDIFF" | "DATEDIFF_BIG":
            return _boundaries(unit(arguments[0].name), copies[1], copies[2], dialect)
        case "DATEADD":
            return _added(unit(arguments[0].name), copies[1], copies[2], dialect)
        case "NEWID":
            name = "gen_random_uuid" if dialect == "postgres" else "uuid"
            return exp.Anonymous(this=name)
        case "SYSDATETIME" | "SYSDATETIMEOFFSET":  # only in defaults: elsewhere they are evaluated once
            return exp.CurrentTimestamp()
        case "SYSUTCDATETIME" | "GETUTCDATE":
            now = exp.AtTimeZone(this=exp.CurrentTimestamp(), zone=exp.Literal.string("UTC"))
            return exp.Paren(this=now)
        case "SUSER_SNAME" | "SUSER_NAME" | "SYSTEM_USER" | "USER_NAME" | "ORIGINAL_LOGIN":
            return exp.CurrentUser()
        case "CHAR":
            return exp.Anonymous(this="chr", expressions=copies)
        case "CHOOSE":
            return _chosen(copies)
        case "QUOTENAME":
            return _quoted_name(copies)
        case "STUFF":
            return _stuffed(copies)
        case "SPACE":
            return exp.Anonymous(this="repeat", expressions=[exp.Literal.string(" "), *copies])
        case "DATENAME":
            return _date_name(unit(arguments[0].name), copies[1], dialect)
        case "DATEFROMPARTS":
            return exp.Anonymous(this="make_date", expressions=copies)
        case "EOMONTH":
            return _end_of_month(copies, dialect)
        case "FORMAT":
            return _formatted(copies, dialect)
    return None


def _chosen(arguments: list[exp.Expr]) -> exp.Expr:
    case = exp.Case(this=arguments[0])
    for number, value in enumerate(arguments[1:], 1):
        case.append("ifs", exp.If(this=exp.Literal.number(number), true=value))
    return case


def _quoted_name(arguments: list[exp.Expr]) -> exp.Expr:
    """In brackets, or between the quotes that a constant names."""
    if isinstance(arguments[-1], exp.Null):
        return arguments[-1]
    mark = arguments[1].name if len(arguments) > 1 else "["
    quotes = {"[": "[]", "]": "[]", "'": "''", '"': '""', "(": "()", ")": "()"}.get(mark[:1])
    if quotes is None or (len(arguments) > 1 and not isinstance(arguments[1], exp.Literal)):
        raise sql_error(50040, "QUOTENAME of a column with this quote", "Give [, ', \" or ( as a constant.")
    twice = [exp.Literal.string(quotes[1]), exp.Literal.string(quotes[1] * 2)]
    inner = exp.Anonymous(this="replace", expressions=[arguments[0], *twice])
    opened = exp.DPipe(this=exp.Literal.string(quotes[0]), expression=inner, safe=True)
    return exp.Paren(this=exp.DPipe(this=opened, expression=exp.Literal.string(quotes[1]), safe=True))


def _stuffed(arguments: list[exp.Expr]) -> exp.Expr:
    """NULL where it begins outside of the text; what is put in may be NULL."""
    text, start, length, new = arguments
    put = exp.Anonymous(this="coalesce", expressions=[new, exp.Literal.string("")])
    whole = exp.Anonymous(this="overlay", expressions=[text, put, start, length])
    size = exp.Anonymous(this="length", expressions=[text.copy()])
    inside = exp.Between(this=start.copy(), low=exp.Literal.number(1), high=size)
    return exp.Case(ifs=[exp.If(this=inside, true=whole)])


def _date_name(part: str, source: exp.Expr, dialect: str) -> exp.Expr:
    names = {"month": ("FMMonth", "MMMM"), "weekday": ("FMDay", "EEEE")}
    if part not in names:
        return said_cast(
            _date_part(part, source, dialect), "text" if dialect == "postgres" else "string", dialect
        )
    return _with_pattern(source, *names[part], dialect)


def _with_pattern(source: exp.Expr, at_source: str, of_spark: str, dialect: str) -> exp.Expr:
    name, pattern = ("to_char", at_source) if dialect == "postgres" else ("date_format", of_spark)
    return exp.Anonymous(this=name, expressions=[source, exp.Literal.string(pattern)])


def _end_of_month(arguments: list[exp.Expr], dialect: str) -> exp.Expr:
    moment = arguments[0] if len(arguments) == 1 else _added("month", arguments[1], arguments[0], dialect)
    if dialect == "spark":
        return exp.Anonymous(this="last_day", expressions=[moment])
    first = exp.Anonymous(
        this="date_trunc", expressions=[exp.Literal.string("month"), said_cast(moment, "timestamp", dialect)]
    )
    last = exp.Add(this=first, expression=exp.Interval(this=exp.Literal.string("1 month -1 day")))
    return said_cast(exp.Paren(this=last), "date", dialect)


def _formatted(arguments: list[exp.Expr], dialect: str) -> exp.Expr:
    """FORMAT with a constant pattern; of numbers N with its digits."""
    pattern = arguments[1]
    if isinstance(pattern, exp.Null):
        return pattern
    if not isinstance(pattern, exp.Literal) or len(arguments) > 2:
        raise sql_error(50040, "FORMAT of a column in this form", "Give one constant pattern.")
    text = str(pattern.this)
    if not is_of_numbers(text):
        return _with_pattern(arguments[0], source_pattern(text), spark_pattern(text), dialect)
    if text[0] not in "nN":
        raise sql_error(50040, f"FORMAT of a column with '{text}'", "Supported are N0 to N9 and dates.")
    digits = int(text[1:] or 2)
    if dialect == "spark":
        return exp.Anonymous(this="format_number", expressions=[arguments[0], exp.Literal.number(digits)])
    shape = "FM999,999,999,999,999,990" + ("." + "0" * digits if digits else "")
    return exp.Anonymous(this="to_char", expressions=[arguments[0], exp.Literal.string(shape)])


_PARTS: Mapping[str, str] = {
    "year": "YEAR", "quarter": "QUARTER", "month": "MONTH", "day": "DAY", "hour": "HOUR", "minute": "MINUTE",
    "second": "SECOND", "dayofyear": "DOY", "weekday": "DOW",
}  # fmt: skip


def _date_part(part: str, source: exp.Expr, dialect: str) -> exp.Expr:
    if part not in _PARTS:
        raise sql_error(50040, f"DATEPART({part}) of a column", f"Supported are {', '.join(_PARTS)}.")
    extract = exp.Extract(this=exp.Var(this=_PARTS[part]), expression=source)
    extract.meta["said"] = True
    whole: exp.Expr = exp.func("floor", extract) if part == "second" else extract
    if part == "weekday" and dialect == "postgres":  # Sunday is 1 for T-SQL and Spark
        whole = exp.Add(this=extract, expression=exp.Literal.number(1))
    return said_cast(whole, "int", dialect)


def read_time(literal: exp.Literal) -> exp.Expr:
    """The time that a text says, for Spark. Raises 241."""
    moment = convert(Value(TEXT, str(literal.this)), DATETIME2).value
    assert isinstance(moment, datetime)
    return exp.cast(exp.Literal.string(moment.isoformat(" ")), "timestamp")


def _as_moment(node: exp.Expr, dialect: str) -> exp.Expr:
    """A time; text that says one is read as T-SQL reads it."""
    if dialect == "spark" and isinstance(node, exp.Literal) and node.is_string:
        return read_time(node)
    return said_cast(node, "timestamp", dialect)


def said_cast(node: exp.Expr, name: str, dialect: str) -> exp.Expr:
    """A cast to a type of the target, which nothing translates again."""
    type_ = exp.DataType.build(name, dialect=dialect)
    type_.meta["said"] = True
    return exp.Cast(this=node, to=type_)


_MICROSECONDS: Mapping[str, int] = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}


def _boundaries(part: str, start: exp.Expr, end: exp.Expr, dialect: str) -> exp.Expr:
    """DATEDIFF counts boundaries that are crossed, so both ends are cut down to the part first."""
    if part in _MONTHS:
        return _months_between(_MONTHS[part], start, end, dialect)
    if part not in _MICROSECONDS:
        known = ", ".join((*_MICROSECONDS, *_MONTHS))
        raise sql_error(50040, f"DATEDIFF({part}) of columns", f"Supported are {known}.")
    first, last = (_cut(part, each, dialect) for each in (start, end))
    if dialect == "postgres":
        difference = exp.Paren(this=exp.Sub(this=last, expression=first))
        seconds = exp.Extract(this=exp.Var(this="EPOCH"), expression=difference)
        whole: exp.Expr = exp.Mul(this=seconds, expression=exp.Literal.number(1_000_000))
    else:
        ends = [exp.Anonymous(this="unix_micros", expressions=[each]) for each in (last, first)]
        whole = exp.Paren(this=exp.Sub(this=ends[0], expression=ends[1]))
    divisor = exp.Literal.number(_MICROSECONDS[part])
    quotient = exp.Div(this=whole, expression=divisor, typed=False, safe=False)
    return said_cast(exp.Paren(this=quotient), "bigint", dialect)


def _cut(part: str, moment: exp.Expr, dialect: str) -> exp.Expr:
    """The beginning of the part that a moment is in. Weeks begin on Sunday; for the targets on Monday."""
    cast = _as_moment(moment, dialect)
    if part == "week":
        day = exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this="DAY"))
        cast = exp.Paren(this=exp.Add(this=cast, expression=day))
    name = f"{part}s" if dialect == "postgres" and part in ("microsecond", "millisecond") else part
    return exp.Anonymous(this="date_trunc", expressions=[exp.Literal.string(name), cast])


_MONTHS: Mapping[str, tuple[tuple[str, int], ...]] = {
    "month": (("YEAR", 12), ("MONTH", 1)),
    "quarter": (("YEAR", 4), ("QUARTER", 1)),
    "year": (("YEAR", 1),),
}


def _months_between(
    parts: tuple[tuple[str, int], ...], start: exp.Expr, end: exp.Expr, dialect: str
) -> exp.Expr:
    """The difference of what the calendar says, each part by its weight."""
    terms = []
    for name, weight in parts:
        ends = []
        for each in (end, start):
            moment = _as_moment(each.copy(), dialect)
            extract = exp.Extract(this=exp.Var(this=name), expression=moment)
            extract.meta["said"] = True
            ends.append(extract)
        difference = exp.Paren(this=exp.Sub(this=ends[0], expression=ends[1]))
        terms.append(exp.Mul(this=difference, expression=exp.Literal.number(weight)))
    total: exp.Expr = terms[0]
    for term in terms[1:]:
        total = exp.Add(this=total, expression=term)
    return said_cast(exp.Paren(this=total), "int", dialect)


_ADDED = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")


def _added(part: str, count: exp.Expr, source: exp.Expr, dialect: str) -> exp.Expr:
    part = "day" if part in ("dayofyear", "weekday") else part
    if part not in _ADDED:
        raise sql_error(50040, f"DATEADD({part}) of a column", f"Supported are {', '.join(_ADDED)}.")
    if dialect == "spark":
        return exp.Anonymous(this="timestampadd", expressions=[exp.Var(this=part.upper()), count, source])
    size, name = ("3", "MONTH") if part == "quarter" else ("1", part.upper())
    interval = exp.Mul(
        this=exp.Paren(this=count),
        expression=exp.Interval(this=exp.Literal.string(size), unit=exp.Var(this=name)),
    )
    return exp.Paren(this=exp.Add(this=source, expression=interval))
