"""What PostgreSQL and Spark say differently from T-SQL, beyond what sqlglot knows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError, UnsupportedError

from engine.tsql.evaluation import call_of, type_of
from engine.tsql.functions import unit
from engine.tsql.messages import SqlError, sql_error
from engine.tsql.places import place_of
from engine.tsql.types import MAX, SqlType

TypeOf = Callable[[exp.Column], str | None]
"""The type of a column in the target's words."""

_TEXTS = ("nvarchar", "nchar", "char", "character", "text", "varchar", "string", "name", "bpchar", "citext")
_TEXT_CALLS = frozenset(
    {"UPPER", "LOWER", "LTRIM", "RTRIM", "TRIM", "SUBSTRING", "LEFT", "RIGHT", "CONCAT", "CONCAT_WS",
     "REPLACE", "REPLICATE", "REVERSE", "CHAR"}
)  # fmt: skip
BOOLEAN = "boolean"
"""Under this key a tree says that it gives a boolean where T-SQL has a bit."""
_BOOLEAN_NODES = (exp.EQ, exp.NEQ)
_LONGEST_FRACTION = 6


def postgres_type(type_: SqlType) -> str:
    """The type of PostgreSQL that holds its values."""
    bounded = f"({type_.length})" if type_.length not in (None, MAX) else ""
    match type_.name:
        case "varchar" | "nvarchar":
            return f"varchar{bounded}" if bounded else "text"
        case "char" | "nchar":
            return f"char{bounded}"
        case "datetime2" | "datetimeoffset" | "time":
            digits = min(_LONGEST_FRACTION, 7 if type_.scale is None else type_.scale)
            name = {"datetime2": "timestamp", "datetimeoffset": "timestamptz", "time": "time"}[type_.name]
            return f"{name}({digits})"
        case "decimal" | "numeric":
            return f"numeric({type_.precision},{type_.scale})"
        case "sql_variant":
            raise sql_error(50040, "sql_variant", "Use another type.")
    return _POSTGRES_TYPES.get(type_.name, type_.name)


_POSTGRES_TYPES: Mapping[str, str] = {
    "bit": "boolean",
    "tinyint": "smallint",
    "binary": "bytea",
    "varbinary": "bytea",
    "money": "numeric(19,4)",
    "smallmoney": "numeric(10,4)",
    "float": "double precision",
    "datetime": "timestamp(3)",
    "smalldatetime": "timestamp(0)",
    "uniqueidentifier": "uuid",
}


def spark_type(type_: SqlType) -> str:
    """The type of Spark that holds its values."""
    match type_.name:
        case "decimal" | "numeric":
            return f"decimal({type_.precision},{type_.scale})"
        case "tinyint":
            return "smallint"
    return _SPARK_TYPES.get(type_.name, "string" if type_.is_string else type_.name)


_SPARK_TYPES: Mapping[str, str] = {
    "bit": "boolean",
    "binary": "binary",
    "varbinary": "binary",
    "money": "decimal(19,4)",
    "smallmoney": "decimal(10,4)",
    "float": "double",
    "real": "float",
    "datetime": "timestamp",
    "datetime2": "timestamp",
    "smalldatetime": "timestamp",
    "datetimeoffset": "timestamp",
    "time": "string",
    "uniqueidentifier": "string",
    "sql_variant": "string",
}


def rewritten(
    tree: exp.Expr, type_name: Callable[[SqlType], str], dialect: str, type_of_column: TypeOf
) -> exp.Expr:
    """The tree in the target's words, inner parts first. It is changed in place. Raises SqlError."""
    for child in list(tree.iter_expressions()):
        new = rewritten(child, type_name, dialect, type_of_column)
        if new is not child:
            child.replace(new)
    try:
        said = _said(tree, type_name, dialect, type_of_column)
    except SqlError as error:
        error.place = error.place or place_of(tree)
        raise
    return tree if said is None else said


def generated(tree: exp.Expr, dialect: str) -> str:
    """The text of one statement: names quoted, nothing left out in silence."""
    try:
        return tree.sql(dialect, identify=True, unsupported_level=ErrorLevel.RAISE, comments=False)
    except UnsupportedError as error:
        raise sql_error(50040, str(error), "See docs/tsql.md.") from error


@contextmanager
def understood() -> Iterator[None]:
    """Around a translation: a tree of a shape that nobody thought of is refused, and the session goes on."""
    try:
        yield
    except (
        AttributeError,
        KeyError,
        IndexError,
        TypeError,
        ValueError,
        RecursionError,
        SqlglotError,
    ) as error:
        raise sql_error(50040, "This statement", "See docs/tsql.md.") from error


def _said(
    node: exp.Expr, type_name: Callable[[SqlType], str], dialect: str, type_of_column: TypeOf
) -> exp.Expr | None:
    if isinstance(node, exp.DataType):
        return None if isinstance(node.parent, exp.DataType) else _type(node, type_name, dialect)
    if dialect == "postgres" and _tries(node):
        raise sql_error(50040, "TRY_CAST or TRY_CONVERT of a column of the source", "Use CASE and LIKE.")
    if isinstance(node, exp.LimitOptions) and (node.args.get("percent") or node.args.get("with_ties")):
        raise sql_error(50040, "TOP with PERCENT or WITH TIES", "Use RANK() or a number of rows.")
    if isinstance(node, exp.Convert):
        return _converted(node, type_name, dialect)
    if isinstance(node, exp.Add) and (
        _is_text(node.this, type_of_column) and _is_text(node.expression, type_of_column)
    ):
        return exp.DPipe(this=node.this.copy(), expression=node.expression.copy(), safe=True)
    if isinstance(node, _BOOLEAN_NODES):
        _as_boolean(node, type_of_column)
        return None
    if isinstance(node, exp.Case):
        _choice_of_boolean(node, type_of_column)
        return None
    if isinstance(node, exp.TimeStrToTime | exp.TsOrDsToDate):
        return None
    if isinstance(node, exp.Extract) and node.meta.get("said"):
        return None
    call = call_of(node)
    if call is not None and call[0] == "ASCII" and dialect == "spark":
        return None if _is_text(call[1][0], type_of_column) else _first_byte(call[1][0])
    return None if call is None else _call(call[0], call[1], dialect)


def _first_byte(node: exp.Expr) -> exp.Expr:
    """ASCII of bytes, such as an update mask's: Spark's own takes them for UTF-8."""
    first = exp.Anonymous(
        this="substring", expressions=[node.copy(), exp.Literal.number(1), exp.Literal.number(1)]
    )
    digits = exp.Anonymous(this="hex", expressions=[first])
    number = exp.Anonymous(this="conv", expressions=[digits, exp.Literal.number(16), exp.Literal.number(10)])
    return _said_cast(number, "int", "spark")


def _tries(node: exp.Expr) -> bool:
    """Whether it converts or gives NULL, which the source can't."""
    return isinstance(node, exp.TryCast) or bool(isinstance(node, exp.Convert) and node.args.get("safe"))


def _type(node: exp.DataType, type_name: Callable[[SqlType], str], dialect: str) -> exp.Expr | None:
    """A type as the target has it; one that is the target's already stays."""
    if node.meta.get("said"):
        return None
    try:
        new = exp.DataType.build(type_name(type_of(node)), dialect=dialect)
    except ValueError:
        return None
    for part in new.walk():  # places are those of the script, not of the type's own text
        part.meta.clear()
    new.meta["said"] = True
    return new


def _converted(node: exp.Convert, type_name: Callable[[SqlType], str], dialect: str) -> exp.Expr:
    """CONVERT of a column: of bytes as hex with style 1 and 2, of times with the ISO styles, else as CAST."""
    target, value = type_of(node.this), node.expression
    style = node.args.get("style")
    if style is None:
        cast: exp.Expr = exp.Cast(this=value.copy(), to=node.this.copy())
        return exp.TryCast(this=value.copy(), to=node.this.copy()) if node.args.get("safe") else cast
    number = str(style.this) if isinstance(style, exp.Literal) else ""
    if number in ("1", "2") and target.is_string:
        digits = (
            exp.func("encode", value.copy(), exp.Literal.string("hex"))
            if dialect == "postgres"
            else exp.func("hex", value.copy())
        )
        prefix = exp.Literal.string("0x" if number == "1" else "")
        return exp.DPipe(this=prefix, expression=exp.Upper(this=digits), safe=True)
    if (formats := _ISO_STYLES.get(number)) is not None and target.is_string:
        name, form = ("to_char", formats[0]) if dialect == "postgres" else ("date_format", formats[1])
        return exp.Anonymous(this=name, expressions=[value.copy(), exp.Literal.string(form)])
    styles = ", ".join(["1, 2 (binary)", *_ISO_STYLES])
    raise sql_error(50040, f"CONVERT of a column with style {number}", f"Supported are {styles}.")


_ISO_STYLES: Mapping[str, tuple[str, str]] = {
    "20": ("YYYY-MM-DD HH24:MI:SS", "yyyy-MM-dd HH:mm:ss"),
    "120": ("YYYY-MM-DD HH24:MI:SS", "yyyy-MM-dd HH:mm:ss"),
    "21": ("YYYY-MM-DD HH24:MI:SS.MS", "yyyy-MM-dd HH:mm:ss.SSS"),
    "121": ("YYYY-MM-DD HH24:MI:SS.MS", "yyyy-MM-dd HH:mm:ss.SSS"),
    "126": ('YYYY-MM-DD"T"HH24:MI:SS.MS', "yyyy-MM-dd'T'HH:mm:ss.SSS"),
    "23": ("YYYY-MM-DD", "yyyy-MM-dd"),
    "112": ("YYYYMMDD", "yyyyMMdd"),
    "108": ("HH24:MI:SS", "HH:mm:ss"),
    "101": ("MM/DD/YYYY", "MM/dd/yyyy"),
    "103": ("DD/MM/YYYY", "dd/MM/yyyy"),
}


def _is_text(node: exp.Expr, type_of_column: TypeOf) -> bool:
    """Whether + puts it together with other text rather than adds it."""
    if isinstance(node, exp.Paren | exp.Alias):
        return _is_text(node.this, type_of_column)
    if isinstance(node, exp.Substring):
        return _is_text(node.this, type_of_column)
    if isinstance(node, exp.Literal | exp.National):
        return isinstance(node, exp.National) or bool(node.is_string)
    if isinstance(node, exp.DPipe):
        return True
    if isinstance(node, exp.Null):
        return True
    if isinstance(node, exp.Add):
        return _is_text(node.this, type_of_column) and _is_text(node.expression, type_of_column)
    if isinstance(node, exp.Cast | exp.TryCast | exp.Convert):
        to = node.this if isinstance(node, exp.Convert) else node.args["to"]
        name = str(to.sql("tsql")).lower()
        return name.startswith(("varchar", "nvarchar", "char", "nchar", "sysname", "text", "string"))
    if isinstance(node, exp.Coalesce):
        return _is_text(node.this, type_of_column)
    if isinstance(node, exp.Column):
        return (type_of_column(node) or "").lower().startswith(_TEXTS)
    if isinstance(node, exp.Anonymous) and node.name in ("to_char", "date_format"):
        return True
    call = call_of(node)
    return call is not None and call[0] in _TEXT_CALLS


def _as_boolean(node: exp.Expr, type_of_column: TypeOf) -> None:
    """``flag = 1`` of a column that is boolean in the target."""
    for side, other in (("this", "expression"), ("expression", "this")):
        column, literal = node.args[side], node.args[other]
        if _is_boolean(column, type_of_column) and (flag := boolean_of(literal)) is not None:
            node.set(other, flag)


def _choice_of_boolean(node: exp.Case, type_of_column: TypeOf) -> None:
    """``CASE flag WHEN 1 …`` of what is boolean in the target."""
    if _is_boolean(node.args.get("this"), type_of_column):
        for branch in node.args["ifs"]:
            if (flag := boolean_of(branch.this)) is not None:
                branch.set("this", flag)


def _is_boolean(node: object, type_of_column: TypeOf) -> bool:
    while isinstance(node, exp.Paren) and not node.meta.get(BOOLEAN):
        node = node.this
    if isinstance(node, exp.Column):
        return (type_of_column(node) or "").lower() in ("boolean", "bool", "bit")
    return isinstance(node, exp.Expr) and bool(node.meta.get(BOOLEAN))


def boolean_of(node: object) -> exp.Boolean | None:
    """The literals 0, 1, '0', '1', 'true', 'false' as a boolean; None for all else."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Literal):
        return None
    text = str(node.this).lower()
    if text in ("true", "false"):
        return exp.Boolean(this=text == "true")
    return exp.Boolean(this=int(text) != 0) if text.isdigit() else None


def _call(name: str, arguments: list[exp.Expr], dialect: str) -> exp.Expr | None:
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
    return None


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
    return _said_cast(whole, "int", dialect)


def _said_cast(node: exp.Expr, name: str, dialect: str) -> exp.Expr:
    type_ = exp.DataType.build(name, dialect=dialect)
    type_.meta["said"] = True
    return exp.Cast(this=node, to=type_)


_SECONDS: Mapping[str, int] = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


def _boundaries(part: str, start: exp.Expr, end: exp.Expr, dialect: str) -> exp.Expr:
    """DATEDIFF counts boundaries that are crossed, so both ends are cut down to the part first."""
    if part in _MONTHS:
        return _months_between(_MONTHS[part], start, end, dialect)
    if part not in _SECONDS:
        known = ", ".join((*_SECONDS, *_MONTHS))
        raise sql_error(50040, f"DATEDIFF({part}) of columns", f"Supported are {known}.")
    ends = [
        exp.Anonymous(
            this="date_trunc", expressions=[exp.Literal.string(part), _said_cast(each, "timestamp", dialect)]
        )
        for each in (start, end)
    ]
    if dialect == "postgres":
        difference = exp.Paren(this=exp.Sub(this=ends[1], expression=ends[0]))
        seconds: exp.Expr = exp.Extract(this=exp.Var(this="EPOCH"), expression=difference)
    else:
        seconds = exp.Paren(
            this=exp.Sub(
                this=exp.Anonymous(this="unix_timestamp", expressions=[ends[1]]),
                expression=exp.Anonymous(this="unix_timestamp", expressions=[ends[0]]),
            )
        )
    quotient = exp.Div(this=seconds, expression=exp.Literal.number(_SECONDS[part]), typed=False, safe=False)
    return _said_cast(exp.Paren(this=quotient), "bigint", dialect)


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
            moment = _said_cast(each.copy(), "timestamp", dialect)
            extract = exp.Extract(this=exp.Var(this=name), expression=moment)
            extract.meta["said"] = True
            ends.append(extract)
        difference = exp.Paren(this=exp.Sub(this=ends[0], expression=ends[1]))
        terms.append(exp.Mul(this=difference, expression=exp.Literal.number(weight)))
    total: exp.Expr = terms[0]
    for term in terms[1:]:
        total = exp.Add(this=total, expression=term)
    return _said_cast(exp.Paren(this=total), "int", dialect)


def _added(part: str, count: exp.Expr, source: exp.Expr, dialect: str) -> exp.Expr:
    if part not in ("year", "month", "day", "week", "hour", "minute", "second"):
        raise sql_error(50040, f"DATEADD({part}) of a column", "Supported are year to second.")
    if dialect == "spark":
        return exp.Anonymous(this="timestampadd", expressions=[exp.Var(this=part.upper()), count, source])
    interval = exp.Mul(
        this=exp.Paren(this=count),
        expression=exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this=part.upper())),
    )
    return exp.Paren(this=exp.Add(this=source, expression=interval))
