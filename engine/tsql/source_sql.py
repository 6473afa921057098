"""Statements for the source database: T-SQL trees to PostgreSQL's text. Pure but for the catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from engine.sources.sql_session import SourceRelation
from engine.tsql.evaluation import Evaluator
from engine.tsql.folding import folded, source_literal
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
from engine.tsql.rewriting import boolean_of, generated, postgres_type, rewritten

DIALECT = "postgres"


@dataclass(frozen=True, slots=True)
class SourceText:
    """Statements to run in order; the last one gives rows where ``returns_rows``."""

    statements: tuple[str, ...]
    returns_rows: bool = False


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
        if isinstance(copy, exp.Select):
            return self._into(copy)
        if isinstance(copy, exp.Update):
            copy = _update_from(copy)
        elif isinstance(copy, exp.Delete):
            copy = _delete_from(copy)
        returning = _returning(copy)
        self._name(copy)
        _boolean_values(copy)
        if isinstance(copy, exp.Insert):
            _name_insert_columns(copy)
        return SourceText((self._text(copy),), returning)

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
        definition = ", ".join(self._text(each) for each in schema.expressions)
        return SourceText((f"CREATE {'TEMPORARY ' if temporary else ''}TABLE {target} ({definition})",))

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


def _name_common_tables(tree: exp.Expr) -> None:
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and is_own(table):
            for clause in tree.find_all(exp.CTE):
                if clause.alias.lower() == table.name.lower():
                    table.set("this", exp.to_identifier(clause.alias, quoted=True))


def _returning(tree: exp.Expr) -> bool:
    """OUTPUT: of INSERT the inserted, of DELETE the deleted row, as RETURNING has them."""
    clause = tree.args.get("returning")
    if clause is None:
        return False
    allowed = {exp.Insert: "inserted", exp.Delete: "deleted"}.get(type(tree))  # type: ignore[arg-type]
    if clause.args.get("into") or (
        isinstance(tree, exp.Update) and allowed is None and not _only_new(clause)
    ):
        raise sql_error(
            50040, "OUTPUT of this form", "Supported are OUTPUT inserted.… and, in DELETE, deleted.…."
        )
    for column in clause.find_all(exp.Column):
        if column.table.lower() not in ("", allowed or "inserted"):
            raise sql_error(50040, f"OUTPUT {column.sql('tsql')}", "Use inserted.… or, in DELETE, deleted.….")
        column.set("table", None)
    return True


def _only_new(clause: exp.Expr) -> bool:
    return all(column.table.lower() == "inserted" for column in clause.find_all(exp.Column))


def _update_from(tree: exp.Update) -> exp.Update:
    """``UPDATE a SET … FROM t AS a JOIN u ON …``: the target leaves FROM, its join becomes a condition."""
    source = tree.args.get("from_")
    if source is not None:
        target, rest, conditions = _target_in_from(tree.this, source.this)
        tree.set("this", target)
        tree.set("from_", exp.From(this=rest) if rest is not None else None)
        for condition in conditions:
            tree.where(condition, copy=False)
    for assignment in tree.expressions:
        if isinstance(assignment.this, exp.Column):
            assignment.this.set("table", None)
    return tree


def _delete_from(tree: exp.Delete) -> exp.Delete:
    """``DELETE a FROM t AS a JOIN u ON …``: the same with USING."""
    targets = tree.args.get("tables")
    if targets and not isinstance(tree.this, exp.Expr):  # DELETE t, without FROM
        tree.set("this", targets[0])
        tree.set("tables", None)
    elif targets:
        target, rest, conditions = _target_in_from(targets[0], tree.this)
        tree.set("tables", None)
        tree.set("this", target)
        if rest is not None:
            tree.set("using", [rest])
        for condition in conditions:
            tree.where(condition, copy=False)
    return tree


def _target_in_from(target: exp.Expr, first: exp.Expr) -> tuple[exp.Expr, exp.Expr | None, list[exp.Expr]]:
    """The target's table with its alias, what is left of FROM, and the conditions of its joins."""
    joins = list(first.args.get("joins") or ())
    first.set("joins", None)
    tables = [first, *(join.this for join in joins)]
    index = next((i for i, table in enumerate(tables) if _is_same(table, target)), None)
    if index is None:
        return target, _joined(first, joins), []
    for join in joins:
        if join.side or (join.kind or "").upper() not in ("", "INNER", "CROSS") or join.args.get("using"):
            raise sql_error(50040, "An outer join in UPDATE or DELETE", "Use a condition with EXISTS.")
    conditions = [join.args["on"] for join in joins if join.args.get("on") is not None]
    rest = [table for i, table in enumerate(tables) if i != index]
    if not rest:
        return tables[index], None, conditions
    return (
        tables[index],
        _joined(rest[0], [exp.Join(this=each, kind="CROSS") for each in rest[1:]]),
        conditions,
    )


def _joined(first: exp.Expr, joins: list[exp.Join]) -> exp.Expr:
    if joins:
        first.set("joins", joins)
    return first


def _is_same(table: exp.Expr, target: exp.Expr) -> bool:
    if not isinstance(table, exp.Table) or not isinstance(target, exp.Table):
        return False
    if not target.db and table.alias:
        return bool(table.alias.lower() == target.name.lower())
    return table_name(table) == table_name(target)


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
