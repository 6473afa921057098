"""Change data within INSERT, UPDATE, DELETE, MERGE and SELECT … INTO: which parts Spark answers. Pure.

A change of rows is made by the source, so what it reads of Highwater's goes there first: whole queries over
change data where they stand for a table, and else only the tables and functions that they name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from engine.tsql.evaluation import call_of, session_function
from engine.tsql.names import quoted_identifier
from engine.tsql.spark_sql import Wrapper, function_name, is_system_object

_TEXTS = ("character varying", "character", "text", "name", "citext")
_NUMBERS = ("smallint", "integer", "bigint", "numeric", "real", "double precision")
_MOMENTS = ("date", "timestamp without time zone", "timestamp with time zone")
_MODIFIER = re.compile(r"\(\d+(,-?\d+)?\)")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a statement that Spark answers: a query, or the table or function that a FROM names.

    is_table: whether its place is one of a table, which sees no columns of the query around it.
    """

    node: exp.Select | exp.SetOperation | exp.Table
    is_table: bool

    @property
    def query(self) -> exp.Expr:
        """What Spark is asked."""
        if not isinstance(self.node, exp.Table):
            return self.node
        table = self.node.copy()
        for argument in ("alias", "joins"):
            table.set(argument, None)
        return exp.select("*").from_(table)

    def becomes(self, name: str) -> None:
        """The part's rows are in the temporary table ``name``."""
        table = exp.Table(this=quoted_identifier(name))
        if isinstance(self.node, exp.Table):
            alias = self.node.alias or function_name(self.node) or self.node.name
            self.node.set(
                "alias", self.node.args.get("alias") or exp.TableAlias(this=quoted_identifier(alias))
            )
            self.node.set("this", table.this)
            self.node.set("db", None)
            self.node.set("catalog", None)
        else:
            self.node.replace(exp.select("*").from_(table))


def parts(tree: exp.Expr, wrappers: Mapping[str, Wrapper]) -> list[Part]:
    """The parts of a change that Spark answers, apart from each other."""
    return list(_parts(tree, wrappers))


def tables_of(part: Part, wrappers: Mapping[str, Wrapper]) -> list[Part]:
    """The same part as the tables and functions alone that it names."""
    return [Part(table, True) for table in part.node.find_all(exp.Table) if _is_ours(table, wrappers)]


def _parts(node: exp.Expr, wrappers: Mapping[str, Wrapper]) -> Iterator[Part]:
    if isinstance(node, exp.Select | exp.SetOperation):
        is_table = _stands_for_a_table(node)
        if reads_only_changes(node, wrappers) or (is_table and is_for_spark(node, wrappers)):
            yield Part(node, is_table)
            return
    if isinstance(node, exp.Table) and _is_ours(node, wrappers):
        yield Part(node, True)
    for child in node.iter_expressions():
        yield from _parts(child, wrappers)


def _stands_for_a_table(query: exp.Expr) -> bool:
    """Whether it is a derived table, a common table expression, or what an INSERT inserts."""
    above = query.parent
    if isinstance(above, exp.Subquery):
        return isinstance(above.parent, exp.From | exp.Join | exp.Merge | exp.Delete)
    return above is None or isinstance(above, exp.CTE | exp.Insert)


def _is_ours(table: exp.Table, wrappers: Mapping[str, Wrapper]) -> bool:
    return is_system_object(table) or function_name(table).lower() in wrappers


def is_for_spark(query: exp.Expr, wrappers: Mapping[str, Wrapper]) -> bool:
    """Whether Spark answers all of a query that stands for itself, its source tables carried there."""
    return reads_only_changes(query, wrappers) or _asks_for_times(query)


def reads_only_changes(query: exp.Expr, wrappers: Mapping[str, Wrapper]) -> bool:
    """Whether it reads change data, and nothing but that and its own common table expressions."""
    own = {each.alias.lower() for each in query.find_all(exp.CTE)}
    into = query.args.get("into")
    found = [
        table
        for table in query.find_all(exp.Table)
        if (table.db or table.name.lower() not in own) and table.parent is not into
    ]
    return bool(found) and all(_is_ours(table, wrappers) for table in found)


def _asks_for_times(query: exp.Expr) -> bool:
    """Whether it calls fn_cdc_map_lsn_to_time of a column, which the source can't answer."""
    for node in query.find_all(exp.Dot):
        call = call_of(node)
        if call is not None and session_function(call[0]) == "FN_CDC_MAP_LSN_TO_TIME":
            return node.find(exp.Column) is not None
    return False


def with_own_expressions(tree: exp.Insert, wrappers: Mapping[str, Wrapper]) -> None:
    """``WITH c AS (…) INSERT … SELECT … FROM c`` of change data alone: the expressions go to the SELECT."""
    clause = tree.args.get("with_")
    if clause is None or not isinstance(tree.expression, exp.Select | exp.SetOperation):
        return
    query = tree.expression.copy()
    query.set("with_", clause.copy())
    if reads_only_changes(query, wrappers):
        tree.set("with_", None)
        tree.set("expression", query)


def converted(name: str, have: str, need: str) -> exp.Expr:
    """A column for an INSERT, converted where the source would not do it by itself, as T-SQL does.

    have, need: types in the source's words. Lengths stay with the column that is written: a conversion would
    cut in silence what an assignment refuses.
    """
    column: exp.Expr = exp.column(quoted_identifier(name))
    for kind in _conversions(_base(have), _base(need)):
        column = exp.Cast(this=column, to=exp.Var(this=kind))
    return column


def _conversions(have: str, need: str) -> Sequence[str]:
    if have == need or (have in _NUMBERS and need in _NUMBERS) or (have in _MOMENTS and need in _MOMENTS):
        return ()
    if need in _TEXTS:
        return () if have in _TEXTS else ("text",)
    if "boolean" in (have, need) and (have in _NUMBERS or need in _NUMBERS):
        return ("integer",) if have == "boolean" else ("integer", "boolean")
    return (need,)


def _base(type_: str) -> str:
    return _MODIFIER.sub("", type_)
