"""What PostgreSQL and Spark say differently from T-SQL, beyond what sqlglot knows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError, UnsupportedError

from engine.tsql.evaluation import call_of, type_of
from engine.tsql.like_patterns import like_said
from engine.tsql.messages import SqlError, sql_error
from engine.tsql.places import place_of
from engine.tsql.row_functions import TEXT_CALLS, said_call, said_cast
from engine.tsql.typed_forms import typed
from engine.tsql.types import MAX, SqlType

TypeOf = Callable[[exp.Column], str | None]
"""The type of a column in the target's words."""

_TEXTS = ("nvarchar", "nchar", "char", "character", "text", "varchar", "string", "name", "bpchar", "citext")
_TEXT_CALLS = frozenset(
    {"UPPER", "LOWER", "LTRIM", "RTRIM", "TRIM", "SUBSTRING", "LEFT", "RIGHT", "CONCAT", "CONCAT_WS",
     "REPLACE", "REPLICATE", "REVERSE", "CHAR", "QUOTENAME", "STUFF", "SPACE", "DATENAME", "FORMAT"}
)  # fmt: skip
BOOLEAN = "boolean"
"""Under this key a tree says that it gives a boolean where T-SQL has a bit."""
_BOOLEAN_NODES = (exp.EQ, exp.NEQ)
_LONGEST_FRACTION = 6
_LENGTH = "length"
"""Under this key a type of text of the target says how long T-SQL's is."""


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
    if isinstance(node, exp.LimitOptions):
        if node.args.get("percent"):
            raise sql_error(50040, "TOP with PERCENT", "Use PERCENT_RANK() or a number of rows.")
        if node.args.get("with_ties") and dialect != "postgres":
            raise sql_error(50040, "TOP … WITH TIES of change data", "Use RANK().")
    if isinstance(node, exp.Limit) and (options := node.args.get("limit_options")) is not None:
        return _with_ties(node) if options.args.get("with_ties") else None
    if isinstance(node, exp.With):
        _name_recursion(node)
        return None
    if isinstance(node, exp.Convert):
        converted = _converted(node, type_name, dialect)
        converted.parent = node.parent  # types of columns are found from there
        return typed(converted, dialect, type_of_column) or _bounded(converted, node.this)
    if isinstance(node, exp.Cast) and dialect == "spark" and node.args["to"].meta.get(_LENGTH):
        return _bounded(node.copy(), node.args["to"])
    if (found := typed(node, dialect, type_of_column)) is not None:
        return found
    if isinstance(node, exp.Add) and _joins_text(node, type_of_column):
        return exp.DPipe(this=node.this.copy(), expression=node.expression.copy(), safe=True)
    if isinstance(node, exp.Escape) or (
        isinstance(node, exp.Like) and not isinstance(node.parent, exp.Escape)
    ):
        return like_said(node, dialect)
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
    return None if call is None else said_call(call[0], call[1], dialect)


def _name_recursion(clause: exp.With) -> None:
    """The targets want to be told that a common table expression reads itself."""
    for each in clause.expressions:
        name = each.alias.lower()
        if any(table.name.lower() == name and not table.db for table in each.this.find_all(exp.Table)):
            clause.set("recursive", True)


def _with_ties(limit: exp.Limit) -> exp.Fetch:
    options = exp.LimitOptions(rows=True, with_ties=True)
    return exp.Fetch(direction="FIRST", count=limit.expression.copy(), limit_options=options)


def _first_byte(node: exp.Expr) -> exp.Expr:
    """ASCII of bytes, such as an update mask's: Spark's own takes them for UTF-8."""
    first = exp.Anonymous(
        this="substring", expressions=[node.copy(), exp.Literal.number(1), exp.Literal.number(1)]
    )
    digits = exp.Anonymous(this="hex", expressions=[first])
    number = exp.Anonymous(this="conv", expressions=[digits, exp.Literal.number(16), exp.Literal.number(10)])
    return said_cast(number, "int", "spark")


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
    known = type_of(node)
    if known.is_string and known.length not in (None, MAX):
        new.meta[_LENGTH] = known.length
    return new


def _bounded(node: exp.Expr, to: exp.Expr) -> exp.Expr:
    """Text cut off at the length of its type, which only a cast of PostgreSQL does by itself."""
    length = to.meta.get(_LENGTH)
    return node if length is None else exp.func("left", node, exp.Literal.number(length))


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


def _joins_text(node: exp.Add, type_of_column: TypeOf) -> bool:
    """Whether + puts text together: one side is text, and the other one too as far as can be known."""
    kinds = [_kind(side, type_of_column) for side in (node.this, node.expression)]
    return _TEXT in kinds and _OTHER not in kinds


_TEXT, _OTHER, _UNKNOWN = "text", "other", "unknown"
# Expressions that have the kind of what they are made of.
_OF_THEIR_OWN = (
    exp.Paren, exp.Alias, exp.Substring, exp.Max, exp.Min, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue,
    exp.Window, exp.Nullif, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls,
)  # fmt: skip


def _kind(node: exp.Expr, type_of_column: TypeOf) -> str:
    """Whether a value is text, something else, or of a type that is not known."""
    if isinstance(node, _OF_THEIR_OWN):
        return _kind(node.this, type_of_column)
    if isinstance(node, exp.Literal):
        return _TEXT if node.is_string else _OTHER
    if isinstance(node, exp.National | exp.DPipe | exp.GroupConcat):
        return _TEXT
    if isinstance(node, exp.Null):
        return _UNKNOWN
    if isinstance(node, exp.Add):
        return _TEXT if _joins_text(node, type_of_column) else _OTHER
    if isinstance(node, exp.Cast | exp.TryCast | exp.Convert):
        to = node.this if isinstance(node, exp.Convert) else node.args["to"]
        return _TEXT if _is_text_type(str(to.sql("tsql"))) else _OTHER
    if isinstance(node, exp.Case):
        choices = [each.args["true"] for each in node.args["ifs"]]
        return _common([*choices, node.args.get("default")], type_of_column)
    if isinstance(node, exp.If):
        return _common([node.args["true"], node.args.get("false")], type_of_column)
    if isinstance(node, exp.Coalesce):
        return _common([node.this, *node.expressions], type_of_column)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
        return _common(node.this.expressions[:1], type_of_column)
    if isinstance(node, exp.Column):
        type_ = type_of_column(node)
        return _UNKNOWN if not type_ else _TEXT if _is_text_type(type_) else _OTHER
    if isinstance(node, exp.Anonymous) and node.name in TEXT_CALLS:
        return _TEXT
    call = call_of(node)
    return _TEXT if call is not None and call[0] in _TEXT_CALLS else _OTHER


def _common(nodes: Sequence[exp.Expr | None], type_of_column: TypeOf) -> str:
    """The kind of a choice: that of the first one that is known."""
    kinds = [_kind(node, type_of_column) for node in nodes if node is not None]
    return next((kind for kind in kinds if kind != _UNKNOWN), _UNKNOWN)


def _is_text_type(name: str) -> bool:
    return name.lower().startswith((*_TEXTS, "sysname"))


def _is_text(node: exp.Expr, type_of_column: TypeOf) -> bool:
    return _kind(node, type_of_column) == _TEXT


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
