"""Statements for the source database: T-SQL trees to PostgreSQL's text. Pure but for the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from engine.sources.sql_session import SourceRelation
from engine.tsql.evaluation import Evaluator
from engine.tsql.folding import folded, source_literal
from engine.tsql.joined_changes import delete_from, name_target, update_from
from engine.tsql.mask_calls import mask_functions
from engine.tsql.messages import sql_error
from engine.tsql.names import (
    COLUMNS,
    chosen,
    column_name,
    column_type,
    each_table,
    is_own,
    name_columns,
    name_table,
    table_name,
    tables_of,
)  # fmt: skip
from engine.tsql.output_clause import into_of, name_output
from engine.tsql.partial_changes import choose_rows
from engine.tsql.rewriting import boolean_of, generated, postgres_type, rewritten

DIALECT = "postgres"
_OUTPUT = '"highwater output"'


@dataclass(frozen=True, slots=True)
class SourceText:
    """Statements to run in order; the last one gives rows where ``returns_rows``.

    shows_old_and_new: whether RETURNING names old or new rows, as PostgreSQL 18 does.
    """

    statements: tuple[str, ...]
    returns_rows: bool = False
    shows_old_and_new: bool = False


class SourceTranslator:
    """Translates for one source, whose tables ``relations`` looks up."""

    def __init__(
        self, relations: Callable[[Sequence[str]], Sequence[SourceRelation]], evaluator: Evaluator
    ) -> None:
        self._relations = relations
        self._evaluator = evaluator

    def query(self, tree: exp.Expr) -> SourceText:
        """A SELECT."""
        copy = folded(tree.copy(), self._evaluator, source_literal)
        self._name(copy)
        return SourceText((self._text(copy),), True)

    def modification(self, tree: exp.Expr) -> SourceText:
        """INSERT, UPDATE, DELETE, MERGE, SELECT … INTO."""
        copy = folded(tree.copy(), self._evaluator, source_literal)
        mask_functions(copy, self._evaluator)
        if isinstance(copy, exp.Select):
            return self._into(copy)
        if isinstance(copy, exp.Update):
            update_from(copy, self._key)
        elif isinstance(copy, exp.Delete):
            delete_from(copy, self._key)
        choose_rows(copy, self._key)
        into = into_of(copy)
        self._name(copy)
        name_target(copy)
        returns = copy.args.get("returning") is not None
        is_new = returns and name_output(copy)
        _boolean_values(copy)
        if isinstance(copy, exp.Insert):
            _name_insert_columns(copy)
        text = self._text(copy)
        if into is not None:
            text = f"WITH {_OUTPUT} AS ({text}) INSERT INTO {self._written(into)} SELECT * FROM {_OUTPUT}"
        return SourceText((text,), returns and into is None, is_new)

    def definition(self, tree: exp.Expr) -> SourceText:
        """CREATE, ALTER, DROP, TRUNCATE."""
        copy = tree.copy()
        for text in list(copy.find_all(exp.National)):
            text.replace(exp.Literal.string(str(text.this)))
        if isinstance(copy, exp.Create):
            return self._created(copy)
        if isinstance(copy, exp.Drop):
            return self._dropped(copy)
        self._name(copy)
        more: list[str] = []
        if isinstance(copy, exp.Alter):
            _plain_constraints(copy)
            _boolean_defaults(copy)
            for column, allow_null in _nullability(copy):
                quoted = exp.to_identifier(column, quoted=True).sql(DIALECT)
                change = "DROP" if allow_null else "SET"
                more.append(f"ALTER TABLE {copy.this.sql(DIALECT)} ALTER COLUMN {quoted} {change} NOT NULL")
        for table in copy.find_all(exp.Table):
            table.set("alias", None)
        return SourceText((self._text(copy), *more))

    def relation(self, schema: str, name: str) -> SourceRelation | None:
        """The table or view of that name in any case. Raises 50041."""
        return chosen(self._relations([name]), schema, name)

    # Steps

    def _key(self, table: exp.Table) -> Sequence[str]:
        """The primary key of a table that is changed; empty where it has none or is not there."""
        relation = self.relation(*table_name(table))
        return () if relation is None else relation.key

    def _written(self, target: exp.Table | exp.Schema) -> str:
        """A table that is written to, with its columns if they are listed. Raises 207, 208."""
        table = target.this if isinstance(target, exp.Schema) else target
        relation = self.relation(*table_name(table))
        if relation is None:
            raise sql_error(208, table_name(table)[1])
        name_table(table, relation)
        for identifier in target.expressions if isinstance(target, exp.Schema) else ():
            if (found := column_name(table.meta[COLUMNS], identifier.name)) is None:
                raise sql_error(207, identifier.name)
            identifier.set("this", found[0])
        return target.sql(DIALECT, identify=True)

    def _name(self, tree: exp.Expr) -> None:
        names = sorted({table_name(table)[1] for table in tables_of(tree)})
        relations = self._relations(names) if names else []
        each_table(tree, lambda schema, name: chosen(relations, schema, name))
        _name_common_tables(tree)
        name_columns(tree)

    def _text(self, tree: exp.Expr) -> str:
        return generated(rewritten(tree, postgres_type, DIALECT, column_type), DIALECT)

    def _into(self, query: exp.Select) -> SourceText:
        into = query.args["into"]
        query.set("into", None)
        target = self._target(into.this)
        text = self._text_of_query(query)
        schema, _ = table_name(into.this)
        kind = "TEMPORARY TABLE" if not schema else "TABLE"
        return SourceText((f"CREATE {kind} {target} AS {text}",))

    def _text_of_query(self, query: exp.Expr) -> str:
        self._name(query)
        return self._text(query)

    def _target(self, table: exp.Table) -> str:
        """The quoted name of a table that is made."""
        schema, name = table_name(table)
        quoted = exp.to_identifier(name, quoted=True).sql(DIALECT)
        return f"{self._schema(schema).sql(DIALECT)}.{quoted}" if schema else quoted

    def _schema(self, schema: str) -> exp.Identifier:
        """A schema by its name in any case: that of a table in it, where there is one."""
        found = exp.to_identifier(self.known_schema(schema), quoted=True)
        assert isinstance(found, exp.Identifier)
        return found

    def known_schema(self, schema: str) -> str:
        """Schemas are set by the session; see `schemas`."""
        matches = [known for known in self.schemas if known.lower() == schema.lower()]
        return schema if schema in matches or not matches else matches[0]

    type_asked: Callable[[str], str] = staticmethod(lambda query: "text")
    """Answers a query for the name of a type. Set by the session; without one every type is text."""

    schemas: Sequence[str] = ()
    """Names of schemas of the source, as they are now."""

    def _created(self, tree: exp.Create) -> SourceText:
        kind = str(tree.args["kind"]).upper()
        if kind == "SCHEMA":
            name = exp.to_identifier(tree.this.db, quoted=True).sql(DIALECT)
            return SourceText((f"CREATE SCHEMA {name}",))
        if kind.endswith("INDEX"):
            tree.set("kind", "INDEX")
            self._name(tree)
            for table in tree.find_all(exp.Table):
                table.set("alias", None)
            for ordered in tree.find_all(exp.Ordered):
                ordered.set("nulls_first", not ordered.args.get("desc"))
            return SourceText((self._text(tree),))
        schema = tree.this if isinstance(tree.this, exp.Schema) else None
        if schema is None or not schema.expressions:
            raise sql_error(102, "CREATE TABLE")
        _plain_constraints(tree)
        _boolean_defaults(tree)
        target, temporary = self._target(schema.this), not table_name(schema.this)[0]
        self._references(schema)
        for node in tree.find_all(exp.Identifier):
            node.set("quoted", True)
        plain = {
            each.name: each.args["kind"].copy()
            for each in schema.expressions
            if isinstance(each, exp.ColumnDef) and each.args.get("kind") is not None
        }
        types = {name: self._text(kind) for name, kind in plain.items()}
        definition = ", ".join(
            self._computed(each, types) if is_computed(each) else self._text(each)
            for each in schema.expressions
        )
        return SourceText((f"CREATE {'TEMPORARY ' if temporary else ''}TABLE {target} ({definition})",))

    def _computed(self, column: exp.Expr, types: Mapping[str, str]) -> str:
        """A computed column. The source keeps its values whether PERSISTED or not, and wants its type."""
        computed = column.find(exp.ComputedColumnConstraint)
        assert computed is not None
        row = exp.Table(this=exp.to_identifier("row", quoted=True))
        row.meta[COLUMNS] = {name.lower(): (name, type_) for name, type_ in types.items()}
        query = folded(exp.select(computed.this.copy()).from_(row), self._evaluator, source_literal)
        name_columns(query)
        value = self._text(query).removeprefix("SELECT ").removesuffix(' FROM "row"')
        nulls = ", ".join(
            f"CAST(NULL AS {type_}) AS {exp.to_identifier(name, quoted=True).sql(DIALECT)}"
            for name, type_ in types.items()
        )
        asked = f'SELECT pg_catalog.pg_typeof({value}) FROM (SELECT {nulls}) AS "row"'
        name = exp.to_identifier(column.name, quoted=True).sql(DIALECT)
        not_null = " NOT NULL" if computed.args.get("not_null") else ""
        return f"{name} {self.type_asked(asked)} GENERATED ALWAYS AS ({value}) STORED{not_null}"

    def _references(self, schema: exp.Schema) -> None:
        for table in list(schema.find_all(exp.Table)):
            if table is schema.this:
                continue
            wanted = table_name(table)
            relation = self.relation(*wanted)
            if relation is not None:
                name_table(table, relation)
                named = table.parent.expressions if isinstance(table.parent, exp.Schema) else []
                for identifier in named:
                    if found := column_name(table.meta[COLUMNS], identifier.name):
                        identifier.set("this", found[0])
            else:
                table.set("db", exp.to_identifier(self.known_schema(wanted[0]), quoted=True))

    def _dropped(self, tree: exp.Drop) -> SourceText:
        kind = str(tree.args["kind"]).upper()
        tables = tree.args.get("tables") or [tree.this]
        statements = []
        for table in tables:
            if kind == "SCHEMA":
                name = self._schema(table.db or table.name).sql(DIALECT)
                statements.append(f"DROP SCHEMA {'IF EXISTS ' if tree.args.get('exists') else ''}{name}")
                continue
            if kind == "INDEX":
                statements.append(self._dropped_index(tree, table))
                continue
            if kind != "TABLE" and kind != "VIEW":
                raise sql_error(50040, f"DROP {kind}", "Tables, views and schemas can be dropped.")
            schema, name = table_name(table)
            relation = self.relation(schema, name)
            if relation is None:
                if tree.args.get("exists"):
                    continue
                raise sql_error(3701, f"{table.db}.{name}" if table.db else name)
            name_table(table, relation)
            table.set("alias", None)
            statements.append(f"DROP {kind} {table.sql(DIALECT)}")
        return SourceText(tuple(statements))

    def _dropped_index(self, tree: exp.Drop, index: exp.Table) -> str:
        """``DROP INDEX i ON t``: at the source an index is found by the schema of its table."""
        cluster = tree.args.get("cluster")
        table = cluster.find(exp.Table) if isinstance(cluster, exp.Expr) else None
        wanted = table_name(table) if table is not None else ("", index.db)
        relation = self.relation(*wanted) if wanted[1] else None
        if relation is None:
            raise sql_error(3701, index.name)
        schema = exp.to_identifier(relation.schema, quoted=True).sql(DIALECT)
        name = exp.to_identifier(index.name, quoted=True).sql(DIALECT)
        return f"DROP INDEX {'IF EXISTS ' if tree.args.get('exists') else ''}{schema}.{name}"


def is_computed(column: exp.Expr) -> bool:
    """Whether CREATE TABLE has it computed."""
    return isinstance(column, exp.ColumnDef) and column.find(exp.ComputedColumnConstraint) is not None


def _name_common_tables(tree: exp.Expr) -> None:
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and is_own(table):
            for clause in tree.find_all(exp.CTE):
                if clause.alias.lower() == table.name.lower():
                    table.set("this", exp.to_identifier(clause.alias, quoted=True))


def _boolean_values(tree: exp.Expr) -> None:
    """0 and 1 for columns that are boolean at the source."""
    if isinstance(tree, exp.Update):
        for assignment in tree.expressions:
            column = assignment.this
            if isinstance(column, exp.Column) and column_type(column) == "boolean":
                _set_boolean(assignment, "expression")
        return
    if not isinstance(tree, exp.Insert):
        return
    table = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    columns = table.meta.get(COLUMNS, {})
    listed = [each.name for each in tree.this.expressions] if isinstance(tree.this, exp.Schema) else None
    types = _types(columns, listed)
    rows = tree.expression.expressions if isinstance(tree.expression, exp.Values) else [tree.expression]
    for row in rows:
        if isinstance(row, exp.Tuple | exp.Select):
            for index, (cell, type_) in enumerate(zip(list(row.expressions), types, strict=False)):
                inner = cell.this if isinstance(cell, exp.Alias) else cell
                if type_ == "boolean" and (flag := boolean_of(inner)) is not None:
                    row.expressions[index].replace(flag)


def _types(columns: dict[str, tuple[str, str]], listed: list[str] | None) -> list[str]:
    if listed is None:
        return [type_ for key, (_, type_) in columns.items() if key.startswith("=")]
    found = [column_name(columns, name) for name in listed]
    return [each[1] if each else "" for each in found]


def _set_boolean(node: exp.Expr, key: str) -> None:
    if (flag := boolean_of(node.args[key])) is not None:
        node.set(key, flag)


def _name_insert_columns(tree: exp.Insert) -> None:
    if not isinstance(tree.this, exp.Schema):
        tree.this.set("alias", None)
        return
    columns = tree.this.this.meta.get(COLUMNS, {})
    tree.this.this.set("alias", None)
    for identifier in tree.this.expressions:
        if (found := column_name(columns, identifier.name)) is None:
            raise sql_error(207, identifier.name)
        identifier.set("this", found[0])


def _plain_constraints(tree: exp.Expr) -> None:
    """CLUSTERED and COLLATE say nothing here: the source has one kind of index and its own collation."""
    for node in list(tree.find_all(exp.ClusteredColumnConstraint, exp.NonClusteredColumnConstraint)):
        parent = node.parent
        columns = node.this if isinstance(node.this, list) else []
        if isinstance(parent, exp.Constraint) and columns:
            kind = parent.expressions[0]
            names = [each.this.this if isinstance(each, exp.Ordered) else each for each in columns]
            if isinstance(kind, exp.PrimaryKeyColumnConstraint):
                parent.set("expressions", [exp.PrimaryKey(expressions=names)])
            else:
                parent.set("expressions", [exp.UniqueColumnConstraint(this=exp.Schema(expressions=names))])
        elif isinstance(parent, exp.ColumnConstraint):
            parent.pop()
        else:
            node.pop()
    for collation in list(tree.find_all(exp.CollateColumnConstraint)):
        assert collation.parent is not None
        collation.parent.pop()
    for key in tree.find_all(exp.PrimaryKey):
        key.set(
            "expressions",
            [each.this.this if isinstance(each, exp.Ordered) else each for each in key.expressions],
        )


def _boolean_defaults(tree: exp.Expr) -> None:
    for column in tree.find_all(exp.ColumnDef):
        kind = column.args.get("kind")
        if kind is None or kind.this != exp.DataType.Type.BIT:
            continue
        for constraint in column.find_all(exp.DefaultColumnConstraint):
            _set_boolean(constraint, "this")


def _nullability(tree: exp.Alter) -> list[tuple[str, bool]]:
    """Columns whose nullability ALTER COLUMN sets along with their type; the source sets them one by one."""
    found = []
    for action in tree.args["actions"]:
        allow_null = action.args.get("allow_null")
        if isinstance(action, exp.AlterColumn) and allow_null is not None:
            action.set("allow_null", None)
            found.append((action.this.name, bool(allow_null)))
    return found
