"""What is supported, decided before anything of a batch runs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from engine.tsql.applying import check_applied
from engine.tsql.dialect import variable
from engine.tsql.evaluation import (
    CONDITION_NODES,
    OWN_FUNCTION,
    SESSION_FUNCTIONS,
    SYSTEM_VARIABLES,
    VALUE_NODES,
    call_of,
    session_function,
    type_of,
)  # fmt: skip
from engine.tsql.functions import FUNCTIONS, UNITS
from engine.tsql.messages import SyntaxProblem, syntax_problem, unsupported
from engine.tsql.places import place_of

Place = tuple[int, int]
"""Line and column."""

_TABLE_KINDS = frozenset({"TABLE", "INDEX", "SCHEMA", "CLUSTERED INDEX", "NONCLUSTERED INDEX"})
_DROPPED = frozenset({"TABLE", "INDEX", "SCHEMA", "FUNCTION", "VIEW"})
_REFUSED: Mapping[type[exp.Expr], tuple[str, str]] = {
    exp.Command: ("This statement", "See docs/tsql.md."),
    exp.Pivot: ("PIVOT and UNPIVOT", "Use CASE and GROUP BY."),
    exp.Collate: ("COLLATE in a query", "The source's own collation decides; use UPPER or LOWER."),
    exp.AtTimeZone: ("AT TIME ZONE", "Times are UTC."),
    exp.ForIn: ("FOR", "Use --format json."),
    exp.Execute: ("EXEC within a statement", "Write it as a statement."),
}
_REFUSED_ARGUMENTS: Mapping[str, tuple[str, str]] = {
    "for_": ("FOR XML, FOR JSON and FOR BROWSE", "Use --format json."),
    "locks": ("FOR", "Use --format json."),
    "options": ("OPTION", "Leave it out."),
    "kind": ("SELECT of this kind", "Leave it out."),
    "match": ("MATCH", "Use joins."),
}
# Functions of queries that both the source and Spark have by the same meaning.
_IN_QUERIES = (
    exp.AggFunc,
    exp.RowNumber,
    exp.Rank,
    exp.DenseRank,
    exp.Ntile,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
    exp.GroupConcat,
    exp.Cast,
    exp.TryCast,
    exp.Case,
    exp.If,
    exp.Coalesce,
    exp.Exists,
    exp.And,
    exp.Or,
    exp.TimeStrToTime,
    exp.TsOrDsToDate,
    exp.Convert,
    exp.Anonymous,
)
PASSED_ON = frozenset(
    {
        "LEN", "LEFT", "RIGHT", "SUBSTRING", "REPLACE", "CHARINDEX", "UPPER", "LOWER", "LTRIM", "RTRIM",
        "TRIM",
        "CONCAT", "CONCAT_WS", "ASCII", "CHAR", "REPLICATE", "REVERSE", "ABS", "ROUND", "CEILING", "FLOOR",
        "POWER",
        "SQRT", "SIGN", "NULLIF", "ISNULL", "COALESCE", "DATEADD", "DATEDIFF", "YEAR", "MONTH", "DAY",
        "NEWID",
        "GREATEST", "LEAST", "DATEPART", "DATEDIFF_BIG", "DATENAME", "DATEFROMPARTS", "EOMONTH", "FORMAT",
        "CHOOSE", "QUOTENAME", "STUFF", "SPACE",
    }
)  # fmt: skip
"""Functions that the source or Spark is asked for where their arguments are columns."""
ROW_FUNCTIONS = frozenset(
    {"FN_CDC_IS_BIT_SET", "FN_CDC_HAS_COLUMN_CHANGED", "FN_CDC_MAP_LSN_TO_TIME", "FN_CDC_GET_COLUMN_ORDINAL"}
)
"""CDC functions that can be asked of each row."""
NAME_FUNCTIONS = frozenset({"SCHEMA_NAME", "OBJECT_NAME", "OBJECT_SCHEMA_NAME"})
"""Functions of numbers in the catalog's views."""


def check_expression(node: exp.Expr, place: Place) -> None:
    """Raises SyntaxProblem for what can't be evaluated: 102, 137, 174, 195, 50040."""
    if isinstance(node, exp.Subquery | exp.Exists):
        check_query(node.this, place)
        return
    if isinstance(node, exp.Column):
        raise syntax_problem(207, node.sql("tsql"), line=place[0])
    name = variable(node)
    if name is not None:
        _check_system_variable(name, place)
        return
    call = call_of(node)
    if call is not None:
        _check_call(*call, place)
        for argument in call[1]:
            check_expression(argument, place)
        return
    if type(node) not in VALUE_NODES | CONDITION_NODES:
        raise unsupported(f"'{node.sql('tsql')}' in an expression", "See docs/tsql.md.", *place)
    for child in _children(node, place):
        check_expression(child, place)


def check_condition(node: exp.Expr, place: Place) -> None:
    """The same for what IF and WHILE ask: a comparison rather than a value."""
    inner = node
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.And | exp.Or):
        for side in (inner.this, inner.expression):
            check_condition(side, place)
    elif isinstance(inner, exp.Not):
        check_condition(inner.this, place)
    elif type(inner) not in CONDITION_NODES:
        raise syntax_problem(102, node.sql("tsql"), line=place[0])
    else:
        check_expression(inner, place)


def check_value(node: exp.Expr, place: Place) -> None:
    """The same for what is assigned or shown: a value rather than a comparison."""
    if type(node) in CONDITION_NODES and not isinstance(node, exp.Paren):
        raise syntax_problem(102, node.sql("tsql"), line=place[0])
    check_expression(node, place)


def _children(node: exp.Expr, place: Place) -> Iterator[exp.Expr]:
    """What is evaluated for the node; its types and styles are checked."""
    for child in node.iter_expressions():
        if isinstance(child, exp.DataType):
            _check_type(child, place)
        elif isinstance(child, exp.Query) and isinstance(node, exp.In):
            check_query(child, place)
        elif isinstance(node, exp.Case) and isinstance(child, exp.If):
            yield from child.iter_expressions()
        else:
            yield child


def _check_type(node: exp.DataType, place: Place) -> None:
    try:
        type_of(node)
    except ValueError as error:
        raise unsupported(f"The type '{error}'", "See docs/tsql.md for types.", *place) from error


def _check_system_variable(name: str, place: Place) -> None:
    if name.startswith("@@") and name not in SYSTEM_VARIABLES:
        raise unsupported(f"'{name}'", f"Supported are {', '.join(sorted(SYSTEM_VARIABLES))}.", *place)


def _check_call(name: str, arguments: list[exp.Expr], place: Place) -> None:
    if name.startswith(OWN_FUNCTION):
        return
    known = session_function(name)
    if known is not None:
        bounds: tuple[int, int] | None = SESSION_FUNCTIONS[known]
    else:
        bounds = FUNCTIONS[name][:2] if name in FUNCTIONS else None
    if bounds is None:
        raise syntax_problem(195, name.lower(), "", line=place[0], column=place[1])
    least, most = bounds
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise syntax_problem(174, name.lower(), wanted, line=place[0])
    is_part = name in ("DATEPART", "DATENAME", "DATEADD", "DATEDIFF", "DATEDIFF_BIG")
    if is_part and arguments[0].name.lower() not in UNITS:
        raise syntax_problem(155, arguments[0].name, "datepart", line=place[0])


def check_query(tree: exp.Expr, place: Place) -> None:
    """Raises SyntaxProblem for what no query can have here."""
    if not isinstance(tree, exp.Query):
        raise syntax_problem(102, tree.sql("tsql"), line=place[0])
    _check_tree(tree, place)
    check_applied(tree, place)


def check_modification(tree: exp.Expr, place: Place) -> None:
    """Raises SyntaxProblem for what no INSERT, UPDATE, DELETE or MERGE can have here."""
    _check_tree(tree, place)
    check_applied(tree, place)
    for assignment in tree.expressions if isinstance(tree, exp.Update) else ():
        if isinstance(assignment.this, exp.Parameter):
            raise unsupported("UPDATE … SET @variable", "Use OUTPUT or a SELECT.", *place)
    for table in tree.find_all(exp.Table):
        if table.catalog:
            raise unsupported(f"'{table.sql('tsql')}', a name with a database", "USE the database.", *place)


def check_definition(tree: exp.Expr, place: Place) -> None:
    """Raises SyntaxProblem for DDL that is not supported."""
    kind = str(tree.args.get("kind") or "").upper()
    properties = tree.args.get("properties")
    plain = (
        all(isinstance(each, exp.TemporaryProperty) for each in properties.expressions)
        if properties
        else True
    )
    if isinstance(tree, exp.Create) and kind in _TABLE_KINDS and plain:
        if isinstance(tree.expression, exp.Query):
            raise unsupported("CREATE TABLE AS", "Use SELECT … INTO.", *place)
    elif (isinstance(tree, exp.Drop) and kind in _DROPPED) or isinstance(tree, exp.Alter | exp.TruncateTable):
        pass
    else:
        raise unsupported(
            f"'{tree.sql('tsql')[:60]}'",
            "Tables, indexes and schemas can be created, altered, dropped and truncated.",
            *place,
        )
    for node in tree.find_all(exp.Command, exp.AlterRename):
        raise unsupported(f"'{node.sql('tsql')[:60]}'", "See docs/tsql.md.", *place)
    for computed in tree.find_all(exp.ComputedColumnConstraint):
        if not isinstance(tree, exp.Create):
            where = place_of(computed.parent or computed) or place
            raise unsupported("ALTER TABLE with a computed column", "Make it with its table.", *where)
        _check_tree(computed.this, place)
    for node in tree.find_all(exp.DataType):
        _check_type(node, place)


def _check_tree(tree: exp.Expr, place: Place) -> None:
    for node in tree.walk():
        if (refused := _REFUSED.get(type(node))) is not None:
            raise unsupported(refused[0], refused[1], *(place_of(node) or place))
        for argument, words in _REFUSED_ARGUMENTS.items():
            if node.args.get(argument) and isinstance(node, exp.Query):
                raise unsupported(words[0], words[1], *place)
        if isinstance(node, exp.LimitOptions) and node.args.get("with_ties"):
            query = node.find_ancestor(exp.Select)
            if query is not None and not query.args.get("order"):
                raise syntax_problem(1062, line=(place_of(query) or place)[0])
        if isinstance(node, exp.DataType):
            if not isinstance(node.parent, exp.DataType):
                _check_type(node, place)
        elif isinstance(node, exp.Parameter):
            _check_system_variable(variable(node) or "", place)
        elif (
            isinstance(node, exp.Func)
            and (problem := _function_problem(node, place_of(node) or place)) is not None
        ):
            raise problem


def _function_problem(node: exp.Func, place: Place) -> SyntaxProblem | None:
    if isinstance(node.parent, exp.Table | exp.Lateral):  # a function that gives a table
        return None
    if isinstance(node.parent, exp.Dot) and isinstance(node.parent.parent, exp.Lateral):
        return None
    call = call_of(node.parent if isinstance(node.parent, exp.Dot) else node)
    if call is None:
        if isinstance(node, _IN_QUERIES):
            return None
        return syntax_problem(
            195, node.sql("tsql").partition("(")[0].lower(), "", line=place[0], column=place[1]
        )
    name, arguments = call
    if name.partition(".")[0] in ("INSERTED", "DELETED"):
        return None
    try:
        _check_call(name, arguments, place)
    except SyntaxProblem as problem:
        return problem
    known = session_function(name)
    of_rows = any(argument.find(exp.Column) is not None for argument in arguments)
    if of_rows and (known not in ROW_FUNCTIONS | NAME_FUNCTIONS if known else name not in PASSED_ON):
        instead = f"Of columns there are {', '.join(sorted(PASSED_ON))}; give others variables or constants."
        return unsupported(f"{name.lower()} of a column", instead, *place)
    return None
