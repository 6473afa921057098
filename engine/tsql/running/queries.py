"""Where a query's rows come from: values alone, the source, or Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlglot import exp

from engine.sources.sql_session import Answer, ResultColumn
from engine.tsql import statements as st
from engine.tsql.conversion import convert
from engine.tsql.environment import SessionEnvironment
from engine.tsql.evaluation import Evaluator
from engine.tsql.msdb_names import qualified
from engine.tsql.rewriting import understood
from engine.tsql.running.object_ids import object_id
from engine.tsql.running.session import Session
from engine.tsql.sink import column_of
from engine.tsql.source_sql import SourceTranslator
from engine.tsql.spark_sql import Place, SparkTranslator, has_name, is_change_data, is_count
from engine.tsql.types import Value
from engine.tsql.work import SourceWork


class Queries:
    """Values and rows, asked for by the statements of a session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def evaluator(self) -> Evaluator:
        """Computes expressions with the variables of now."""
        return Evaluator(
            SessionEnvironment(
                self.session.engine,
                self.session.database,
                self.session.work,
                self.session.state,
                self.session.variables,
                self.answer,
                self.session.clock,
                lambda name: object_id(self.session, name),
                self.session.call_function,
            )
        )

    def value(self, expression: exp.Expr) -> Value:
        """An expression's value."""
        return self.evaluator().value(expression)

    def assign(self, name: str, value: Value) -> None:
        """Gives a variable a value, in the variable's type."""
        self.session.variables[name] = convert(value, self.session.variables[name].type)

    def translator(self) -> SourceTranslator:
        """Translates for the source."""
        translator = SourceTranslator(self.session.work.relations, self.evaluator())
        translator.schemas = _Schemas(self.session.work)
        translator.type_asked = self._type_asked
        return translator

    def _type_asked(self, query: str) -> str:
        [[name]] = self.session.work.query(query).rows
        return "text" if name == "unknown" else str(name)

    def answer(self, query: exp.Expr) -> Answer:
        """The rows of a query, from where they are."""
        if isinstance(query, exp.Subquery) and not query.alias:
            query = query.this
        if self.session.in_msdb:
            query = qualified(query)
        if is_scalar(query):
            values = [self.value(each) for each in query.expressions]
            columns = tuple(
                column_of(each.alias, value.type)
                for each, value in zip(query.expressions, values, strict=True)
            )
            return Answer(columns, iter([[value.value for value in values]]))
        if is_change_data(query, self.session.wrappers):
            return self.from_spark(query)
        with understood():
            text = self.translator().query(query)
        answer = self.session.work.query(text.statements[-1])
        return Answer(_labelled(query, answer.columns), answer.rows)

    def from_spark(self, query: exp.Expr) -> Answer:
        """The rows of a query of change data."""
        from engine.query.ad_hoc import AdHocQuery

        engine = self.session.engine
        ad_hoc = self.session.spark_query = AdHocQuery(engine.spark_session(), engine.results_folder())
        try:
            answer = SparkTranslator(self._place(), self.evaluator(), ad_hoc).run(query)
        except BaseException:
            ad_hoc.close()
            raise
        return Answer(answer.columns, _closing(answer.rows, ad_hoc.close))

    def _place(self) -> Place:
        return Place(
            self.session.engine,
            self.session.database,
            self.session.work.principal,
            self.session.is_owner,
            self.session.wrappers,
            self._source_rows,
        )

    def _source_rows(self, table: exp.Table) -> Answer:
        plain = table.copy()
        plain.set("alias", None)
        plain.set("joins", None)
        return self.session.work.query(self.translator().query(exp.select("*").from_(plain)).statements[-1])

    def run(self, statement: st.Query) -> None:
        """A query whose rows go to the user."""
        answer = self.answer(statement.query)
        self.session.counted(self.session.sink.rows(answer.columns, answer.rows))


class _Schemas(Sequence[str]):
    """Schemas of the source, asked for when they are needed."""

    def __init__(self, work: SourceWork) -> None:
        self._work = work
        self._names: Sequence[str] | None = None

    def _known(self) -> Sequence[str]:
        if self._names is None:
            self._names = self._work.schemas()
        return self._names

    def __len__(self) -> int:
        return len(self._known())

    def __getitem__(self, index: Any) -> Any:
        return self._known()[index]


def is_scalar(query: exp.Expr) -> bool:
    """A SELECT without FROM, of values alone."""
    return (
        isinstance(query, exp.Select)
        and all(not value or name == "expressions" for name, value in query.args.items())
        and not any(each.find(exp.Star, exp.AggFunc, exp.Window) for each in query.expressions)
    )


def _labelled(query: exp.Expr, columns: Sequence[ResultColumn]) -> tuple[ResultColumn, ...]:
    """Columns without a name of their own have none, where the source makes one up."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    expressions = list(query.expressions) if isinstance(query, exp.Select) else []
    if len(expressions) != len(columns) or any(each.is_star for each in expressions):
        return tuple(columns)
    return tuple(
        ResultColumn(
            column.name if has_name(each) else "",
            "int" if is_count(each) else column.type_name,
            column.length,
            column.precision,
            column.scale,
        )
        for each, column in zip(expressions, columns, strict=True)
    )


def _closing(rows: Iterator[Sequence[Any]], close: Callable[[], None]) -> Iterator[Sequence[Any]]:
    try:
        yield from rows
    finally:
        close()
