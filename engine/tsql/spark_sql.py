"""Queries over change data: their objects become views of Spark, and T-SQL becomes Spark's SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from engine.errors import CdcError
from engine.model.change import END_LSN, SEQVAL, START_LSN, UPDATE_MASK
from engine.model.lsn import Lsn
from engine.model.wrapper import CDC_SEQVAL, CDC_STARTLSN
from engine.sources.sql_session import Answer, ResultColumn
from engine.tsql.applying import applied_functions, join_functions
from engine.tsql.catalog_views import MAPPING_COLUMNS, VIEWS, CatalogView
from engine.tsql.checks import NAME_FUNCTIONS, ROW_FUNCTIONS
from engine.tsql.conversion import convert
from engine.tsql.dialect import variable
from engine.tsql.evaluation import Evaluator, call_of, session_function
from engine.tsql.folding import folded, spark_literal
from engine.tsql.mask_calls import bit_set, ordinal_call, ordinal_of_rows
from engine.tsql.messages import SqlError, from_engine, sql_error
from engine.tsql.msdb_names import MSDB
from engine.tsql.names import COLUMNS, ColumnType, column_type, is_own, query_columns, table_name
from engine.tsql.objects import catalog_names
from engine.tsql.query_forms import place_values, unite_values
from engine.tsql.refusals import of_spark
from engine.tsql.rewriting import BOOLEAN, generated, rewritten, spark_type
from engine.tsql.typed_forms import MOMENT
from engine.tsql.types import DATETIME, INT, LSN, MASK, MAX, TEXT, SqlType, Value, parse_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from engine.engine import Engine
    from engine.query.ad_hoc import AdHocQuery

DIALECT = "spark"
_SYSTEM_SCHEMAS = ("cdc", "sys", "custom_snapshots")
SOURCE_ROWS = 1_000_000
"""Rows of a source table that a query over change data can take along: they travel to Spark."""
_LSN_NAMES = frozenset({START_LSN, END_LSN, SEQVAL, CDC_STARTLSN, CDC_SEQVAL})
_FUNCTION = re.compile(r"fn_cdc_get_(all|net)_changes_(.+)", re.IGNORECASE | re.DOTALL)
_FLAGS = frozenset({"FN_CDC_IS_BIT_SET", "FN_CDC_HAS_COLUMN_CHANGED"})
_LAKE_TYPES: Mapping[str, SqlType] = {
    "string": TEXT,
    "int": INT,
    "bigint": SqlType("bigint"),
    "smallint": SqlType("smallint"),
    "tinyint": SqlType("smallint"),
    "boolean": SqlType("bit"),
    "float": SqlType("real"),
    "double": SqlType("float"),
    "date": SqlType("date"),
    "timestamp": SqlType("datetime2", scale=6),
    "timestamp_ntz": SqlType("datetime2", scale=6),
    "binary": SqlType("varbinary", MAX),
    "void": INT,
}


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A wrapper function that was made in this session: its instance, kind, and interval's end."""

    capture_instance: str
    kind: str
    closed_high_end_point: bool
    column_list: str | None = None
    update_flag_list: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Who asks, and where."""

    engine: Engine
    database: str
    principal: str | None
    is_owner: Callable[[], bool]
    wrappers: Mapping[str, Wrapper]
    source_rows: Callable[[exp.Table], Answer]
    """All rows of a source table or table variable."""


def is_system_object(table: exp.Table) -> bool:
    """Whether a table belongs to the product: it can be read and not be written."""
    return table.db.lower() in _SYSTEM_SCHEMAS or table.catalog.lower() == MSDB


def is_change_data(tree: exp.Expr, wrappers: Mapping[str, Wrapper]) -> bool:
    """Whether a query reads what Highwater keeps rather than the source."""
    for table in tree.find_all(exp.Table):
        if is_system_object(table):
            return True
        if function_name(table).lower() in wrappers:
            return True
    if any(_reads_changes(join.this.this, wrappers) for join in applied_functions(tree)):
        return True
    return any(
        (call := call_of(node)) is not None
        and session_function(call[0]) in ROW_FUNCTIONS
        and _has_column(node)
        for node in tree.find_all(exp.Dot)
    )


def _reads_changes(function: exp.Expr, wrappers: Mapping[str, Wrapper]) -> bool:
    if isinstance(function, exp.Dot):
        return function.this.name.lower() in ("cdc", "sys") or function.expression.name.lower() in wrappers
    return function.name.lower() in wrappers


def function_name(table: exp.Table) -> str:
    """The name of the function that stands for a table; empty where none does."""
    return str(table.this.name) if isinstance(table.this, exp.Func) else ""


def _has_column(node: exp.Expr) -> bool:
    return node.find(exp.Column) is not None


class SparkTranslator:
    """One query: its views and its text."""

    def __init__(self, place: Place, evaluator: Evaluator, query: AdHocQuery) -> None:
        self._place = place
        self._evaluator = evaluator
        self._query = query
        self._source_types: dict[str, Mapping[str, str]] = {}
        """Of views of change data: types of captured columns in the source's words, names in lower case."""

    def run(self, tree: exp.Expr) -> Answer:
        """The query's rows; views must be closed after them. Raises SqlError, CdcError."""
        from engine.query.ad_hoc import StatementFailed

        copy = tree.copy()
        join_functions(copy)
        unite_values(copy)
        place_values(copy)
        for table in list(copy.find_all(exp.Table)):
            if not is_own(table):
                self._name(table)
        copy = folded(copy, self._evaluator, spark_literal)
        copy = self._row_functions(copy)
        self._name_functions(copy)
        _whole_division(copy)
        text = generated(rewritten(copy, spark_type, DIALECT, column_type), DIALECT)
        try:
            columns, rows = self._query.run(text)
        except StatementFailed as failure:
            subject = failure.subject or _first_column(tree)
            raise of_spark(failure.condition, subject, failure.text) from failure
        return Answer(_result_columns(copy, columns), _checked(rows))

    def _name(self, table: exp.Table) -> None:
        """The view that stands for a table."""
        view, columns = self._view(table)
        own = table_name(table)[1] if variable(table.this) else table.name or function_name(table)
        alias = table.alias or own
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
        table.set("this", exp.to_identifier(view, quoted=True))
        for part in ("db", "catalog", "hints"):
            table.set(part, None)
        known = self._source_types.get(view, {})
        table.meta[COLUMNS] = {
            name.lower(): (name, ColumnType.of(str(type_), known.get(name.lower())))
            for name, type_ in columns
        }

    def _view(self, table: exp.Table) -> tuple[str, Sequence[tuple[str, SqlType]]]:
        schema, name = table.db.lower(), table.name
        if isinstance(table.this, exp.Func):
            return self._function(table)
        catalog = VIEWS.get(f"{schema}.{name.lower()}")
        if table.catalog.lower() == "msdb":
            catalog = VIEWS.get(f"msdb.{schema or 'dbo'}.{name.lower()}")
            if catalog is None:
                raise sql_error(208, f"msdb.{table.db or 'dbo'}.{name}")
        if catalog is not None:
            return self._catalog_view(catalog, f"{schema}.{name}")
        if schema == "cdc":
            return self._change_data(name)
        if schema == "custom_snapshots":
            return self._snapshots(name)
        if schema == "sys":
            raise sql_error(208, f"{table.db}.{name}")
        return self._source(table)

    def _catalog_view(self, view: CatalogView, name: str) -> tuple[str, Sequence[tuple[str, SqlType]]]:
        if view.owners_only and not self._place.is_owner():
            raise denied(name, self._place.database)
        rows = view.read(self._place.engine, self._place.database)
        types = [
            (column, "timestamp_ntz" if type_ == DATETIME else spark_type(type_))
            for column, type_ in view.columns
        ]
        return self._query.rows(rows, types), view.columns

    def _change_data(self, name: str) -> tuple[str, Sequence[tuple[str, SqlType]]]:
        """cdc.lsn_time_mapping and change tables."""
        if not self._place.is_owner():
            raise denied(f"cdc.{name}", self._place.database)
        engine, database = self._place.engine, self._place.database
        if name.lower() == "lsn_time_mapping":
            names = [column for column, _ in MAPPING_COLUMNS]
            frame = engine.lsn_time_mapping(database).select(*names)
            return self._query.view(frame, names, ("start_lsn", "tran_begin_lsn")), MAPPING_COLUMNS
        instance = self.instance(name.lower().removesuffix("_ct")) if name.lower().endswith("_ct") else None
        if instance is None:
            raise sql_error(208, f"cdc.{name}")
        return self._frame(engine.change_table(database, instance), instance)

    def _snapshots(self, name: str) -> tuple[str, Sequence[tuple[str, SqlType]]]:
        """A table of the data collector: of every database for the home's owner, of this one for others."""
        if not self._place.is_owner():
            raise denied(f"custom_snapshots.{name}", self._place.database)
        database = None if self._place.principal is None else self._place.database
        return self._frame(self._place.engine.custom_snapshots(name, database))

    def instance(self, name: str) -> str | None:
        """The capture instance of that name in any case."""
        database = self._place.engine.database(self._place.database)
        if not database.is_cdc_enabled:
            return None
        return instance_name(self._place.engine, database.name, name)

    def _frame(
        self, frame: DataFrame, capture_instance: str | None = None
    ) -> tuple[str, Sequence[tuple[str, SqlType]]]:
        """A frame with columns as the query functions name them; whose changes it has, if any's."""
        columns = [(name, _column_type(name, lake_type)) for name, lake_type in frame.dtypes]
        view = self._query.view(frame, [name for name, _ in columns], tuple(_LSN_NAMES))
        if capture_instance is not None:
            self._source_types[view] = self._captured(capture_instance)
        return view, columns

    def _captured(self, capture_instance: str) -> Mapping[str, str]:
        instances = self._place.engine.help_change_data_capture(self._place.database)
        return {
            column.column_name.lower(): column.column_type
            for each in instances
            if each.capture_instance == capture_instance
            for column in each.columns
        }

    def _function(self, table: exp.Table) -> tuple[str, Sequence[tuple[str, SqlType]]]:
        arguments = [self._evaluator.value(each) for each in table.this.expressions]
        name, engine, database = function_name(table), self._place.engine, self._place.database
        wrapper = self._place.wrappers.get(name.lower())
        if table.db.lower() == "cdc" and (match := _FUNCTION.fullmatch(name)):
            if len(arguments) != 3:
                raise sql_error(313 if len(arguments) < 3 else 8144, f"cdc.{name}")
            instance = self.instance(match[2]) or match[2]
            ask = engine.get_all_changes if match[1].lower() == "all" else engine.get_net_changes
            low, high = (lsn_of(argument) for argument in arguments[:2])
            option = _option(arguments[2])
            frame = ask(database, instance, low, high, option, self._place.principal)
            return self._frame(frame, instance)
        if wrapper is None:
            raise sql_error(208, f"{table.db}.{name}" if table.db else name)
        if len(arguments) != 3:
            raise sql_error(313 if len(arguments) < 3 else 8144, name)
        by_time = engine.all_changes_by_time if wrapper.kind == "all" else engine.net_changes_by_time
        start, end = (convert(argument, DATETIME).value for argument in arguments[:2])
        frame = by_time(
            database,
            wrapper.capture_instance,
            start,  # type: ignore[arg-type]
            end,  # type: ignore[arg-type]
            _option(arguments[2]),
            closed_high_end_point=wrapper.closed_high_end_point,
            column_list=wrapper.column_list,
            update_flag_list=wrapper.update_flag_list,
            principal=self._place.principal,
        )
        return self._frame(frame, wrapper.capture_instance)

    def _source(self, table: exp.Table) -> tuple[str, Sequence[tuple[str, SqlType]]]:
        """A source table, carried over."""
        answer = self._place.source_rows(table)
        columns = [(column.name, result_type(column)) for column in answer.columns]
        rows = list(islice(answer.rows, SOURCE_ROWS + 1))
        if len(rows) > SOURCE_ROWS:
            raise sql_error(
                50040,
                f"'{table.name}' with more than {SOURCE_ROWS} rows in a query over change data",
                "Query the changes into a temporary table, and join that.",
            )
        types = [
            (name, "timestamp_ntz" if type_.is_moment and type_.name != "date" else spark_type(type_))
            for name, type_ in columns
        ]
        return self._query.rows([[_plain(value) for value in row] for row in rows], types), columns

    # CDC functions of rows

    def _row_functions(self, tree: exp.Expr) -> exp.Expr:
        for node in reversed(list(tree.find_all(exp.Dot))):  # inner ones first
            call = call_of(node)
            name = None if call is None else session_function(call[0])
            if call is None or name is None:
                continue
            if name not in ROW_FUNCTIONS:
                raise sql_error(50040, f"sys.{name.lower()} of a column", "Give a variable or a constant.")
            new = self._row_function(name, call[1])
            new.meta[BOOLEAN] = name in _FLAGS
            new.meta[MOMENT] = name == "FN_CDC_MAP_LSN_TO_TIME"
            node.replace(new)
        return tree

    def _name_functions(self, tree: exp.Expr) -> None:
        """SCHEMA_NAME and its like of columns: a choice among the names that there are."""
        for node in list(tree.find_all(exp.Anonymous)):
            name = node.name.upper()
            if name not in NAME_FUNCTIONS:
                continue
            choices = catalog_names(self._place.engine, self._place.database, name)
            case = exp.Case(this=node.expressions[0].copy())
            for number, text in choices:
                case.append("ifs", exp.If(this=exp.Literal.number(number), true=exp.Literal.string(text)))
            node.replace(case if choices else exp.Null())

    def _row_function(self, name: str, arguments: list[exp.Expr]) -> exp.Expr:
        match name:
            case "FN_CDC_IS_BIT_SET":
                return bit_set(arguments[0].copy(), arguments[1].copy())
            case "FN_CDC_HAS_COLUMN_CHANGED":
                position = self._ordinal(arguments)
                return bit_set(position, arguments[2].copy())
            case "FN_CDC_GET_COLUMN_ORDINAL":
                return self._ordinal(arguments)
            case "FN_CDC_MAP_LSN_TO_TIME":
                frame = self._place.engine.lsn_time_mapping(self._place.database)
                names = [column for column, _ in MAPPING_COLUMNS]
                view = self._query.view(frame.select(*names), names, ("start_lsn", "tran_begin_lsn"))
                lsn = arguments[0]
                if isinstance(lsn, exp.Max | exp.Min):  # Spark looks nothing up by what it adds up
                    of_row = [_mapped_time(view, lsn.this.copy()), lsn.this.copy()]
                    name = "max_by" if isinstance(lsn, exp.Max) else "min_by"
                    return exp.Anonymous(this=name, expressions=of_row)
                return _mapped_time(view, lsn.copy())
        raise sql_error(50040, f"sys.{name.lower()} of a column", "Give a variable or a constant.")

    def _ordinal(self, arguments: list[exp.Expr]) -> exp.Expr:
        """The ordinal of the column that the first two arguments name, in this or in each row."""
        if not any(map(_has_column, arguments[:2])):
            return spark_literal(self._evaluator.value(ordinal_call(arguments)))
        known = [
            (instance.capture_instance, column.column_name, column.column_ordinal)
            for instance in self._place.engine.help_change_data_capture(self._place.database)
            for column in instance.columns
        ]
        return ordinal_of_rows(arguments[0], arguments[1], known)


def instance_name(engine: Engine, database: str, name: str) -> str | None:
    """The capture instance of that name in any case; of several the one that is written so."""
    names = [each.capture_instance for each in engine.help_change_data_capture(database)]
    matches = [each for each in names if each.lower() == name.lower()]
    return name if name in matches else (matches[0] if len(matches) == 1 else None)


def lsn_of(value: Value) -> Lsn | None:
    """An LSN of a binary(10) or what becomes one; None for NULL."""
    raw = convert(value, LSN).value
    return None if raw is None else Lsn(raw)  # type: ignore[arg-type]


def denied(name: str, database: str) -> SqlError:
    """Error 229 on an object of schema cdc or sys."""
    schema, _, object_name = name.rpartition(".")
    return sql_error(229, "SELECT", object_name, database, schema)


def _checked(rows: Iterator[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    from engine.query.ad_hoc import StatementFailed

    try:
        yield from rows
    except StatementFailed as failure:
        raise of_spark(failure.condition, failure.subject, failure.text) from failure
    except CdcError as error:
        raise from_engine(error) from error


def _first_column(tree: exp.Expr) -> str:
    """Of a query that does not group, the first column that stands outside of an aggregate."""
    return next((each.name for each in tree.find_all(exp.Column) if not each.find_ancestor(exp.AggFunc)), "")


def _plain(value: Any) -> Any:
    """A value as Spark takes it: times without a zone, in UTC."""
    from datetime import UTC, datetime
    from uuid import UUID

    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return str(value).upper() if isinstance(value, UUID) else value


def _option(value: Value) -> str:
    return "" if value.is_null else str(convert(value, TEXT).value)


def _mapped_time(view: str, lsn: exp.Expr) -> exp.Expr:
    inner = exp.Select(expressions=[exp.Max(this=exp.column("tran_end_time", quoted=True))])
    table = exp.Table(this=exp.to_identifier(view, quoted=True))
    inner.set("from_", exp.From(this=table))
    inner.set(
        "where", exp.Where(this=exp.EQ(this=exp.column("start_lsn", view, quoted=True), expression=lsn))
    )
    return exp.Subquery(this=inner)


def _whole_division(tree: exp.Expr) -> None:
    """Whole numbers divide to a whole number."""
    for node in list(tree.find_all(exp.Div)):
        if _is_whole(node.this) and _is_whole(node.expression):
            node.replace(exp.IntDiv(this=node.this.copy(), expression=node.expression.copy()))


def _is_whole(node: exp.Expr) -> bool:
    if isinstance(node, exp.Paren | exp.Neg | exp.Sum | exp.Max | exp.Min | exp.Avg):
        return _is_whole(node.this)
    if isinstance(node, exp.Literal):
        return not node.is_string and str(node.this).isdigit()
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.IntDiv):
        return _is_whole(node.this) and _is_whole(node.expression)
    if isinstance(node, exp.Nullif):
        return _is_whole(node.this)
    if isinstance(node, exp.Coalesce):
        return _is_whole(node.this) and all(_is_whole(each) for each in node.expressions)
    if isinstance(node, exp.Column):
        return (column_type(node) or "") in ("int", "bigint", "smallint", "tinyint")
    return isinstance(node, exp.Count)


# Types of results


def _column_type(name: str, lake_type: str) -> SqlType:
    if name in _LSN_NAMES:
        return LSN
    if name == UPDATE_MASK:
        return MASK
    return type_of_lake(lake_type)


def type_of_lake(lake_type: str) -> SqlType:
    """The type that T-SQL has for a type of the lake."""
    if lake_type.startswith("decimal("):
        precision, scale = lake_type[8:-1].split(",")
        return SqlType("decimal", precision=int(precision), scale=int(scale))
    return _LAKE_TYPES.get(lake_type, TEXT)


def result_type(column: ResultColumn) -> SqlType:
    """A result column's type."""
    if column.type_name == "decimal" and column.precision is None:
        return SqlType("decimal")
    return SqlType(column.type_name, column.length, column.precision, column.scale)


def _result_columns(tree: exp.Expr, columns: Sequence[tuple[str, str]]) -> tuple[ResultColumn, ...]:
    """Spark forgets lengths: those of columns that come from a view as they are, are the view's."""
    declared: dict[str, str] = {}
    for table in tree.find_all(exp.Table):
        for key, (_, type_) in table.meta.get(COLUMNS, {}).items():
            declared.setdefault(key, type_)
    query = tree
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    expressions = list(query.expressions) if isinstance(query, exp.Select) else []
    placed = (
        expressions
        if len(expressions) == len(columns) and not any(each.is_star for each in expressions)
        else []
    )
    own = query_columns(tree) if isinstance(tree, exp.Select) else {}
    found = []
    for index, (name, lake_type) in enumerate(columns):
        origin = _origin(placed[index], declared) if placed else declared.get(name.lower())
        type_ = type_of_lake(lake_type)
        if origin and _same_kind(known := parse_type(origin), type_):
            type_ = known
        if placed and is_count(placed[index]):
            type_ = INT
        unnamed = bool(placed) and not has_name(placed[index])
        label = "" if unnamed else name
        captured = getattr(own.get(name.lower(), ("", ""))[1], "source_type", None)
        found.append(ResultColumn(label, type_.name, type_.length, type_.precision, type_.scale, captured))
    return tuple(found)


def has_name(node: exp.Expr) -> bool:
    """Whether a column of a select list has a name of its own."""
    return isinstance(node, exp.Alias | exp.Column) or bool(isinstance(node, exp.Subquery) and node.alias)


def is_count(node: exp.Expr) -> bool:
    """Whether a column is COUNT, which is an int; COUNT_BIG is a bigint."""
    inner = node.this if isinstance(node, exp.Alias) else node
    return isinstance(inner, exp.Count) and not inner.args.get("big_int")


def _origin(node: exp.Expr, declared: Mapping[str, str]) -> str | None:
    while isinstance(node, exp.Alias | exp.Max | exp.Min | exp.Paren):
        node = node.this
    return declared.get(node.name.lower()) if isinstance(node, exp.Column) else None


def _same_kind(one: SqlType, other: SqlType) -> bool:
    return (
        spark_type(one) == spark_type(other)
        or (one.is_binary and other.is_binary)
        or (one.is_moment and other.is_moment)
    )
