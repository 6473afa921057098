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
from engine.tsql.carrying import is_for_spark, parts
from engine.tsql.evaluation import Evaluator
from engine.tsql.folding import folded, spark_literal
from engine.tsql.messages import UNSUPPORTED, SqlError, SyntaxProblem
from engine.tsql.names import column_type, table_name
from engine.tsql.query_forms import place_values, unite_values
from engine.tsql.rewriting import generated, rewritten, spark_type, understood
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
                with understood():
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
    if isinstance(tree, exp.Drop) and str(tree.args.get("kind")).upper() == "FUNCTION":
        return  # a function of the session
    if isinstance(tree, _DEFINITION):
        _translator(tree).definition(tree)
    elif isinstance(tree, _CHANGE) or tree.args.get("into"):
        _translate_change(tree)
    elif is_change_data(tree, _AnyWrapper()):
        _translate_for_spark(tree)
    elif tree.args.get("from_") or not isinstance(tree, exp.Select):
        _translator(tree).query(tree)


def _translate_change(tree: exp.Expr) -> None:
    """A change of rows, and what of it Spark is asked for."""
    target = next(tree.find_all(exp.Table), None)
    if target is not None and not isinstance(tree, exp.Select) and is_system_object(target):
        return  # refused when it runs
    copy, wrappers = tree.copy(), _AnyWrapper()
    if isinstance(copy, exp.Select) and is_change_data(copy, wrappers) and is_for_spark(copy, wrappers):
        _translate_for_spark(copy)
        return
    join_functions(copy)
    for number, part in enumerate(parts(copy, wrappers), 1):
        _translate_for_spark(part.query)
        part.becomes(f"#highwater {number}")
    _translator(copy).modification(copy)


def _translator(tree: exp.Expr) -> SourceTranslator:
    return SourceTranslator(_relations_of(tree), Evaluator(_Unknown()))


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
    copy = tree.copy()
    copy.set("into", None)
    join_functions(copy)
    unite_values(copy)
    place_values(copy)
    copy = folded(copy, Evaluator(_Unknown()), spark_literal)
    generated(rewritten(copy, spark_type, DIALECT, column_type), DIALECT)


def _placed(error: SqlError, place: tuple[int, int]) -> SyntaxProblem:
    line, column = place
    text = f"Line {line}, column {column}: {error.message.text}"
    return SyntaxProblem(replace(error.message, text=text, line=line, severity=15), True)
