"""What a statement cannot be translated to is found before its batch runs. Pure.

Statements are translated as if every table were there and every variable were NULL: what is refused for its
form (50040) is refused now, with its place; all other errors wait for the statement itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace

from sqlglot import exp

from engine.sources.sql_session import SourceRelation
from engine.tsql import statements as st
from engine.tsql.applying import join_functions
from engine.tsql.evaluation import Evaluator, call_of, session_function
from engine.tsql.folding import folded, spark_literal
from engine.tsql.messages import UNSUPPORTED, SqlError, SyntaxProblem, sql_error
from engine.tsql.names import column_type, table_name
from engine.tsql.places import place_of
from engine.tsql.rewriting import generated, rewritten, spark_type
from engine.tsql.source_sql import SourceTranslator
from engine.tsql.spark_sql import DIALECT, Wrapper, is_change_data, is_system_object
from engine.tsql.types import NULL, Value

_CHANGE = exp.Insert | exp.Update | exp.Delete | exp.Merge
_DEFINITION = exp.Create | exp.Drop | exp.Alter | exp.TruncateTable


class _Unknown:
    """A session whose variables and functions are all NULL."""

    def variable(self, name: str) -> Value:
        return NULL

    def function(self, name: str, arguments: Sequence[Value]) -> Value:
        return NULL

    def own_function(self, name: str, arguments: Sequence[Value]) -> Value:
        return NULL

    def first_value(self, query: exp.Query) -> Value:
        return NULL

    def has_rows(self, query: exp.Query) -> bool:
        return False

    def column(self, query: exp.Query) -> Sequence[Value]:
        return []


def rehearse(statements: st.Statements) -> None:
    """Raises SyntaxProblem (50040) for the first statement that could not be translated."""
    for statement in every(statements):
        for tree in _trees(statement):
            with_place = (statement.line, statement.column)
            try:
                _translate(tree)
            except SqlError as error:
                if error.message.number == UNSUPPORTED:
                    raise _placed(error, error.place or with_place) from error


def every(statements: st.Statements) -> Iterator[st.Statement]:
    """Statements and those within them."""
    for statement in statements:
        yield statement
        for field in fields(statement):
            value = getattr(statement, field.name)
            inner = value if isinstance(value, tuple) else (value,)
            yield from every(tuple(each for each in inner if isinstance(each, st.Statement)))


def _trees(statement: st.Statement) -> Iterator[exp.Expr]:
    """Queries and changes of a statement, also those in its expressions."""
    for field in fields(statement):
        value = getattr(statement, field.name)
        for each in value if isinstance(value, tuple) else (value,):
            found = each.initial if isinstance(each, st.Declaration) else each
            if isinstance(found, exp.Query | _CHANGE | _DEFINITION):
                yield found
            elif isinstance(found, exp.Expr):
                yield from (node for node in found.find_all(exp.Query) if not node.parent_select)


def _translate(tree: exp.Expr) -> None:
    translator = SourceTranslator(_relations_of(tree), Evaluator(_Unknown()))
    if isinstance(tree, exp.Drop) and str(tree.args.get("kind")).upper() == "FUNCTION":
        return  # a function of the session
    if isinstance(tree, _DEFINITION):
        translator.definition(tree)
    elif is_change_data(tree, _AnyWrapper()):
        _translate_for_spark(tree)
    elif isinstance(tree, _CHANGE) or tree.args.get("into"):
        translator.modification(tree)
    elif tree.args.get("from_") or not isinstance(tree, exp.Select):
        translator.query(tree)


class _AnyWrapper(dict[str, Wrapper]):
    """Says of every function that gives a table that it is one of the product's."""

    def __contains__(self, name: object) -> bool:
        return bool(name)


def _relations_of(tree: exp.Expr) -> Callable[[Sequence[str]], Sequence[SourceRelation]]:
    """Every table that the tree names, without columns."""
    names = {table_name(table) for table in tree.find_all(exp.Table) if table.name or table.this}
    relations = [SourceRelation(schema, name, {}, not schema) for schema, name in names]
    return lambda _: relations


def _translate_for_spark(tree: exp.Expr) -> None:
    if isinstance(tree, _CHANGE):
        target = next((each for each in tree.find_all(exp.Table)), None)
        is_refused_anyway = target is not None and is_system_object(target)
        if is_refused_anyway or (isinstance(tree, exp.Insert) and isinstance(tree.expression, exp.Query)):
            return
        raise sql_error(
            UNSUPPORTED, "UPDATE, DELETE or MERGE with change data", "Use SELECT … INTO a table first."
        )
    copy = tree.copy()
    copy.set("into", None)
    join_functions(copy)
    _check_row_functions(copy)
    copy = folded(copy, Evaluator(_Unknown()), spark_literal)
    generated(rewritten(copy, spark_type, DIALECT, column_type), DIALECT)


def _check_row_functions(tree: exp.Expr) -> None:
    for node in tree.find_all(exp.Dot):
        call = call_of(node)
        name = None if call is None else session_function(call[0])
        if call is None or name is None or not any(each.find(exp.Column) for each in call[1]):
            continue
        is_position = name == "FN_CDC_IS_BIT_SET" and call[1][0].find(exp.Column) is not None
        if is_position or name == "FN_CDC_GET_COLUMN_ORDINAL":
            error = sql_error(
                UNSUPPORTED, f"sys.{name.lower()} of a column", "Give a variable or a constant."
            )
            error.place = place_of(node)
            raise error


def _placed(error: SqlError, place: tuple[int, int]) -> SyntaxProblem:
    line, column = place
    text = f"Line {line}, column {column}: {error.message.text}"
    return SyntaxProblem(replace(error.message, text=text, line=line, severity=15), True)
