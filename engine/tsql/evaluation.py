"""Expressions to values: sqlglot's trees, evaluated as T-SQL does. What a session knows is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Protocol

from sqlglot import exp

from engine.tsql.conversion import convert, try_convert
from engine.tsql.dialect import variable
from engine.tsql.functions import FUNCTIONS
from engine.tsql.messages import sql_error
from engine.tsql.operators import arithmetic, bitwise, compare, like, negated
from engine.tsql.types import (
    BIGINT,
    FLOAT,
    INT,
    NULL,
    SYSNAME,
    SqlType,
    Value,
    parse_type,
)  # fmt: skip

_CAST_LENGTH = 30
_CAST_TYPES: Mapping[str, str] = {"UTINYINT": "tinyint", "TIMESTAMPTZ": "datetimeoffset"}


class Environment(Protocol):
    """What a session knows."""

    def variable(self, name: str) -> Value:
        """A variable's value; ``@name`` or ``@@name`` in lower case."""
        ...

    def function(self, name: str, arguments: Sequence[Value]) -> Value:
        """A function of `SESSION_FUNCTIONS`, by its name in upper case."""
        ...

    def own_function(self, name: str, arguments: Sequence[Value]) -> Value:
        """A function that was made in this session, by its name in any case. Raises 4121."""
        ...

    def first_value(self, query: exp.Query) -> Value:
        """The value of a query for one; NULL without a row. Raises 512 for several rows."""
        ...

    def has_rows(self, query: exp.Query) -> bool:
        """EXISTS."""
        ...

    def column(self, query: exp.Query) -> Sequence[Value]:
        """The values of a query's one column, for IN."""
        ...


CDC_FUNCTIONS: Mapping[str, tuple[int, int]] = {
    "FN_CDC_GET_MIN_LSN": (1, 1),
    "FN_CDC_GET_MAX_LSN": (0, 0),
    "FN_CDC_INCREMENT_LSN": (1, 1),
    "FN_CDC_DECREMENT_LSN": (1, 1),
    "FN_CDC_MAP_LSN_TO_TIME": (1, 1),
    "FN_CDC_MAP_TIME_TO_LSN": (2, 2),
    "FN_CDC_GET_COLUMN_ORDINAL": (2, 2),
    "FN_CDC_IS_BIT_SET": (2, 2),
    "FN_CDC_HAS_COLUMN_CHANGED": (3, 3),
}
"""Functions of schema sys, and how many arguments they take."""

SESSION_FUNCTIONS: Mapping[str, tuple[int, int]] = {
    **CDC_FUNCTIONS,
    "GETDATE": (0, 0),
    "GETUTCDATE": (0, 0),
    "SYSDATETIME": (0, 0),
    "SYSUTCDATETIME": (0, 0),
    "SYSDATETIMEOFFSET": (0, 0),
    "ERROR_NUMBER": (0, 0),
    "ERROR_MESSAGE": (0, 0),
    "ERROR_SEVERITY": (0, 0),
    "ERROR_STATE": (0, 0),
    "ERROR_LINE": (0, 0),
    "ERROR_PROCEDURE": (0, 0),
    "XACT_STATE": (0, 0),
    "DB_NAME": (0, 1),
    "DB_ID": (0, 1),
    "OBJECT_ID": (1, 2),
    "SCHEMA_NAME": (0, 1),
    "SCHEMA_ID": (0, 1),
    "OBJECT_NAME": (1, 2),
    "OBJECT_SCHEMA_NAME": (1, 2),
    "IS_MEMBER": (1, 1),
    "IS_ROLEMEMBER": (1, 2),
    "IS_SRVROLEMEMBER": (1, 2),
    "SCOPE_IDENTITY": (0, 0),
    "SUSER_SNAME": (0, 0),
    "SUSER_NAME": (0, 0),
    "SYSTEM_USER": (0, 0),
    "USER_NAME": (0, 0),
    "CURRENT_USER": (0, 0),
    "ORIGINAL_LOGIN": (0, 0),
    "HOST_NAME": (0, 0),
    "APP_NAME": (0, 0),
    "CURSOR_STATUS": (2, 2),
}
"""Functions that need a session, and how many arguments they take."""

SYSTEM_VARIABLES = frozenset(
    {
        "@@rowcount", "@@error", "@@trancount", "@@fetch_status", "@@version", "@@spid", "@@servername",
        "@@nestlevel", "@@identity",
    }
)  # fmt: skip

# Functions that sqlglot has classes for: T-SQL's name, and the arguments in T-SQL's order.
_CLASSES: Mapping[type[exp.Expr], tuple[str, Callable[[exp.Expr], list[exp.Expr | None]]]] = {
    exp.Length: ("LEN", lambda n: [_uncast(n.this)]),
    exp.Left: ("LEFT", lambda n: [_uncast(n.this), n.expression]),
    exp.Right: ("RIGHT", lambda n: [_uncast(n.this), n.expression]),
    exp.Substring: ("SUBSTRING", lambda n: [n.this, n.args.get("start"), n.args.get("length")]),
    exp.Replace: ("REPLACE", lambda n: [n.this, n.expression, n.args.get("replacement")]),
    exp.StrPosition: ("CHARINDEX", lambda n: [n.args.get("substr"), n.this, n.args.get("position")]),
    exp.Upper: ("UPPER", lambda n: [n.this]),
    exp.Lower: ("LOWER", lambda n: [n.this]),
    exp.Concat: ("CONCAT", lambda n: list(n.expressions)),
    exp.ConcatWs: ("CONCAT_WS", lambda n: list(n.expressions)),
    exp.Ascii: ("ASCII", lambda n: [n.this]),
    exp.Unicode: ("UNICODE", lambda n: [n.this]),
    exp.Chr: ("CHAR", lambda n: list(n.expressions)),
    exp.Repeat: ("REPLICATE", lambda n: [n.this, n.args.get("times")]),
    exp.Space: ("SPACE", lambda n: [n.this]),
    exp.Reverse: ("REVERSE", lambda n: [n.this]),
    exp.Stuff: ("STUFF", lambda n: [n.this, n.args.get("start"), n.args.get("length"), n.expression]),
    exp.Abs: ("ABS", lambda n: [n.this]),
    exp.Round: ("ROUND", lambda n: [n.this, n.args.get("decimals"), n.args.get("truncate")]),
    exp.Ceil: ("CEILING", lambda n: [n.this]),
    exp.Floor: ("FLOOR", lambda n: [n.this]),
    exp.Pow: ("POWER", lambda n: [n.this, n.expression]),
    exp.Sqrt: ("SQRT", lambda n: [n.this]),
    exp.Sign: ("SIGN", lambda n: [n.this]),
    exp.Nullif: ("NULLIF", lambda n: [n.this, n.expression]),
    exp.DateAdd: ("DATEADD", lambda n: [_unit(n), n.expression, _uncast(n.this)]),
    exp.DateDiff: ("DATEDIFF", lambda n: [_unit(n), _uncast(n.expression), _uncast(n.this)]),
    exp.DateFromParts: (
        "DATEFROMPARTS",
        lambda n: [n.args.get("year"), n.args.get("month"), n.args.get("day")],
    ),
    exp.Extract: ("DATEPART", lambda n: [exp.Literal.string(n.name), n.expression]),
    exp.CurrentTimestamp: ("GETDATE", lambda n: []),
    exp.CurrentUser: ("CURRENT_USER", lambda n: []),
    exp.SessionUser: ("CURRENT_USER", lambda n: []),
    exp.ObjectId: ("OBJECT_ID", lambda n: [n.this, n.args.get("expression")]),
}
_DATE_PARTS = frozenset({"DATEPART", "DATENAME", "DATEADD", "DATEDIFF", "DATEDIFF_BIG"})


def _uncast(node: exp.Expr) -> exp.Expr:
    """Without the casts that sqlglot puts around what it takes for text or times."""
    if isinstance(node, exp.TimeStrToTime | exp.TsOrDsToDate):
        return node.this  # type: ignore[no-any-return]
    if isinstance(node, exp.Cast) and node.args.get("to") == exp.DataType.build("text"):
        return node.this  # type: ignore[no-any-return]
    return node


def _unit(node: exp.Expr) -> exp.Expr:
    found = node.args.get("unit")
    return exp.Literal.string(found.name if found is not None else "day")


def call_of(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """T-SQL's name of a function in upper case, and its arguments; None where the node is no call."""
    if isinstance(node, exp.Trim):
        name = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(str(node.args.get("position") or ""), "TRIM")
        return name, [node.this]
    if isinstance(node, exp.Coalesce):
        return "ISNULL" if node.args.get("is_null") else "COALESCE", [node.this, *node.expressions]
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous):
        return f"{node.this.name.upper()}.{node.expression.name.upper()}", list(node.expression.expressions)
    if isinstance(node, exp.Anonymous):
        arguments = list(node.expressions)
        name = node.name.upper()
        if name in _DATE_PARTS and arguments:
            arguments[0] = exp.Literal.string(arguments[0].name)
        return name, arguments
    known = _CLASSES.get(type(node))
    if known is None:
        return None
    name, arguments_of = known
    if name == "DATEDIFF" and node.args.get("big_int"):
        name = "DATEDIFF_BIG"
    return name, [argument for argument in arguments_of(node) if isinstance(argument, exp.Expr)]


OWN_FUNCTION = "DBO."
"""The names of functions that were made in the session begin like this."""


def session_function(name: str) -> str | None:
    """The name in `SESSION_FUNCTIONS` of ``SYS.FN_…`` or a function without a schema."""
    schema, dot, bare = name.rpartition(".")
    if dot:
        return bare if schema == "SYS" and bare in CDC_FUNCTIONS else None
    return name if name in SESSION_FUNCTIONS and name not in CDC_FUNCTIONS else None


def type_of(node: exp.DataType) -> SqlType:
    """The type that CAST and CONVERT name. ValueError for one that is unknown."""
    name = str(getattr(node.this, "value", node.this))
    if name in _CAST_TYPES:
        scale = node.expressions[0].name if node.expressions else None
        return parse_type(f"{_CAST_TYPES[name]}({scale})" if scale else _CAST_TYPES[name])
    return parse_type(node.sql("tsql"), _CAST_LENGTH)


class Evaluator:
    """Evaluates expressions for a session."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def value(self, node: exp.Expr) -> Value:
        """The expression's value. Raises SqlError."""
        evaluate = _VALUES.get(type(node))
        if evaluate is not None:
            return evaluate(self, node)
        if (call := call_of(node)) is not None:
            return self._call(*call)
        raise sql_error(102, node.sql("tsql"))

    def condition(self, node: exp.Expr) -> bool | None:
        """Whether it holds; None for unknown. Raises SqlError."""
        evaluate = _CONDITIONS.get(type(node))
        if evaluate is None:
            raise sql_error(102, node.sql("tsql"))
        return evaluate(self, node)

    def _call(self, name: str, arguments: Sequence[exp.Expr]) -> Value:
        values = [self.value(argument) for argument in arguments]
        if (known := session_function(name)) is not None:
            return self._environment.function(known, values)
        if name.startswith(OWN_FUNCTION):
            return self._environment.own_function(name.removeprefix(OWN_FUNCTION), values)
        found = FUNCTIONS.get(name)
        if found is None:
            raise sql_error(195, name, "")
        return found[2](values)

    # Values

    def _literal(self, node: exp.Expr) -> Value:
        text = str(node.this)
        if isinstance(node, exp.National):
            return Value(SqlType("nvarchar", max(1, len(text))), text)
        assert isinstance(node, exp.Literal)
        if node.is_string:
            return Value(SqlType("varchar", max(1, len(text))), text)
        if "e" in text.lower():
            return Value(FLOAT, float(text))
        if "." in text:
            number = Decimal(text)
            scale = -int(number.as_tuple().exponent)
            return Value(
                SqlType("decimal", precision=max(len(number.as_tuple().digits), scale), scale=scale), number
            )
        whole = int(text)
        if whole < 2**31:
            return Value(INT, whole)
        return Value(SqlType("decimal", precision=len(text), scale=0), Decimal(whole))

    def _hex(self, node: exp.Expr) -> Value:
        digits = str(node.this)
        raw = bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0"))
        return Value(SqlType("varbinary", max(1, len(raw))), raw)

    def _variable(self, node: exp.Expr) -> Value:
        return self._environment.variable(variable(node) or "")

    def _null(self, node: exp.Expr) -> Value:
        return NULL

    def _boolean(self, node: exp.Expr) -> Value:
        raise sql_error(207, node.sql("tsql"))

    def _inner(self, node: exp.Expr) -> Value:
        return self.value(node.this)

    def _negative(self, node: exp.Expr) -> Value:
        return negated(self.value(node.this))

    def _not_bits(self, node: exp.Expr) -> Value:
        value = self.value(node.this)
        if value.is_null:
            return value
        if value.type.name == "bit":
            return Value(value.type, not value.value)
        return convert(Value(BIGINT, ~int(value.value)), value.type)  # type: ignore[arg-type]

    def _arithmetic(self, node: exp.Expr) -> Value:
        return arithmetic(_OPERATORS[type(node)], self.value(node.this), self.value(node.expression))

    def _bitwise(self, node: exp.Expr) -> Value:
        return bitwise(_OPERATORS[type(node)], self.value(node.this), self.value(node.expression))

    def _cast(self, node: exp.Expr) -> Value:
        target = node.args["to"] if isinstance(node, exp.Cast) else node.this
        source = node.this if isinstance(node, exp.Cast) else node.expression
        style = node.args.get("style")
        number = None if style is None else self.value(style).value
        value = self.value(source)
        change = try_convert if isinstance(node, exp.TryCast) or node.args.get("safe") else convert
        return change(value, type_of(target), None if number is None else int(number))  # type: ignore[arg-type]

    def _if(self, node: exp.Expr) -> Value:
        if self.condition(node.this):
            return self.value(node.args["true"])
        otherwise = node.args.get("false")
        return NULL if otherwise is None else self.value(otherwise)

    def _case(self, node: exp.Expr) -> Value:
        subject = node.args.get("this")
        value = None if subject is None else self.value(subject)
        for branch in node.args["ifs"]:
            if value is None:
                holds = self.condition(branch.this)
            else:
                holds = compare(value, self.value(branch.this)) == 0
            if holds:
                return self.value(branch.args["true"])
        default = node.args.get("default")
        return NULL if default is None else self.value(default)

    def _subquery(self, node: exp.Expr) -> Value:
        return self._environment.first_value(node.this)

    # Conditions

    def _compared(self, node: exp.Expr) -> bool | None:
        order = compare(self.value(node.this), self.value(node.expression))
        return None if order is None else _HOLDS[type(node)](order)

    def _and(self, node: exp.Expr) -> bool | None:
        left = self.condition(node.this)
        if left is False:
            return False
        right = self.condition(node.expression)
        return False if right is False else None if left is None or right is None else True

    def _or(self, node: exp.Expr) -> bool | None:
        left = self.condition(node.this)
        if left:
            return True
        right = self.condition(node.expression)
        return True if right else None if left is None or right is None else False

    def _not(self, node: exp.Expr) -> bool | None:
        inner = self.condition(node.this)
        return None if inner is None else not inner

    def _parenthesis(self, node: exp.Expr) -> bool | None:
        return self.condition(node.this)

    def _is(self, node: exp.Expr) -> bool | None:
        return self.value(node.this).is_null

    def _between(self, node: exp.Expr) -> bool | None:
        value = self.value(node.this)
        low, high = (
            compare(value, self.value(node.args["low"])),
            compare(value, self.value(node.args["high"])),
        )
        if (low is not None and low < 0) or (high is not None and high > 0):
            return False
        return None if low is None or high is None else True

    def _in(self, node: exp.Expr) -> bool | None:
        value = self.value(node.this)
        query = node.args.get("query")
        if query is not None:
            others = self._environment.column(query.this if isinstance(query, exp.Subquery) else query)
        else:
            others = [self.value(each) for each in node.expressions]
        orders = [compare(value, other) for other in others]
        return True if 0 in orders else None if None in orders else False

    def _like(self, node: exp.Expr) -> bool | None:
        return like(self.value(node.this), self.value(node.expression))

    def _escape(self, node: exp.Expr) -> bool | None:
        escape = convert(self.value(node.expression), SYSNAME).value
        inner = node.this
        return like(self.value(inner.this), self.value(inner.expression), str(escape))

    def _exists(self, node: exp.Expr) -> bool | None:
        return self._environment.has_rows(node.this)


_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.DPipe: "+",
}
_HOLDS: Mapping[type[exp.Expr], Callable[[int], bool]] = {
    exp.EQ: lambda order: order == 0,
    exp.NEQ: lambda order: order != 0,
    exp.GT: lambda order: order > 0,
    exp.GTE: lambda order: order >= 0,
    exp.LT: lambda order: order < 0,
    exp.LTE: lambda order: order <= 0,
}
_VALUES: Mapping[type[exp.Expr], Callable[[Evaluator, exp.Expr], Value]] = {
    exp.Literal: Evaluator._literal,
    exp.National: Evaluator._literal,
    exp.HexString: Evaluator._hex,
    exp.Parameter: Evaluator._variable,
    exp.Null: Evaluator._null,
    exp.Paren: Evaluator._inner,
    exp.Neg: Evaluator._negative,
    exp.BitwiseNot: Evaluator._not_bits,
    exp.Add: Evaluator._arithmetic,
    exp.Sub: Evaluator._arithmetic,
    exp.Mul: Evaluator._arithmetic,
    exp.Div: Evaluator._arithmetic,
    exp.Mod: Evaluator._arithmetic,
    exp.DPipe: Evaluator._arithmetic,
    exp.BitwiseAnd: Evaluator._bitwise,
    exp.BitwiseOr: Evaluator._bitwise,
    exp.BitwiseXor: Evaluator._bitwise,
    exp.Cast: Evaluator._cast,
    exp.TryCast: Evaluator._cast,
    exp.Convert: Evaluator._cast,
    exp.If: Evaluator._if,
    exp.Case: Evaluator._case,
    exp.Subquery: Evaluator._subquery,
    exp.Alias: Evaluator._inner,
}
_CONDITIONS: Mapping[type[exp.Expr], Callable[[Evaluator, exp.Expr], bool | None]] = {
    exp.EQ: Evaluator._compared,
    exp.NEQ: Evaluator._compared,
    exp.GT: Evaluator._compared,
    exp.GTE: Evaluator._compared,
    exp.LT: Evaluator._compared,
    exp.LTE: Evaluator._compared,
    exp.And: Evaluator._and,
    exp.Or: Evaluator._or,
    exp.Not: Evaluator._not,
    exp.Paren: Evaluator._parenthesis,
    exp.Is: Evaluator._is,
    exp.Between: Evaluator._between,
    exp.In: Evaluator._in,
    exp.Like: Evaluator._like,
    exp.Escape: Evaluator._escape,
    exp.Exists: Evaluator._exists,
}
VALUE_NODES = frozenset(_VALUES)
CONDITION_NODES = frozenset(_CONDITIONS)
