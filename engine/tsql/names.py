"""Names of tables and columns found without regard to case, and written as they were created. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from sqlglot import exp

from engine.sources.sql_session import SourceRelation
from engine.tsql.dialect import variable
from engine.tsql.messages import sql_error

DEFAULT_SCHEMA = "dbo"
COLUMNS = "columns"
"""Under this key a table of a tree has its columns: lower case name to (name, type)."""

Columns = Mapping[str, tuple[str, str]]


class ColumnType(str):
    """A column's type; ``source_type``: of a captured column, its type in the source's words."""

    source_type: str | None = None

    @classmethod
    def of(cls, text: str, source_type: str | None) -> ColumnType:
        """A type and what the source calls it."""
        made = cls(text)
        made.source_type = source_type
        return made


_SCOPES = (exp.Select, exp.Update, exp.Delete, exp.Merge, exp.Insert, exp.Alter, exp.Index)


def table_name(table: exp.Table) -> tuple[str, str]:
    """Schema and name as written; ``@t`` and ``#t`` have no schema, an unqualified name the default one."""
    inner = table.this
    if (name := variable(inner)) is not None:
        return "", name
    if isinstance(inner, exp.Identifier) and inner.args.get("temporary"):
        return "", f"#{inner.name}"
    if table.name.startswith(("#", "@")):
        return "", table.name
    return table.db or DEFAULT_SCHEMA, table.name


def is_own(table: exp.Table) -> bool:
    """Whether it names a common table expression of its statement."""
    return not table.db and _common_expression(table) is not None


def _common_expression(table: exp.Table) -> exp.CTE | None:
    if not isinstance(table.this, exp.Identifier):
        return None
    node: exp.Expr | None = table
    while node is not None:
        clause = node.args.get("with_")
        for each in clause.expressions if isinstance(clause, exp.With) else ():
            if each.alias.lower() == table.name.lower():
                return each  # type: ignore[no-any-return]
        node = node.parent
    return None


def tables_of(tree: exp.Expr) -> list[exp.Table]:
    """Tables that are named, without common table expressions and functions."""
    return [
        table
        for table in tree.find_all(exp.Table)
        if not isinstance(table.this, exp.Func) and not is_own(table) and not _is_pseudo(table)
    ]


def _is_pseudo(table: exp.Table) -> bool:
    """Whether it is a schema's or a constraint's name."""
    kind = str(table.parent.args.get("kind")) if isinstance(table.parent, exp.Create | exp.Drop) else ""
    return kind in ("SCHEMA", "CONSTRAINT")


def chosen(relations: Sequence[SourceRelation], schema: str, name: str) -> SourceRelation | None:
    """The relation of that schema and name, in whatever case; of several the one that is written so.

    Raises 50041 where none of several is.
    """
    found = [
        relation
        for relation in relations
        if relation.name.lower() == name.lower()
        and (relation.is_temporary if not schema else relation.schema.lower() == schema.lower())
        and not (schema and relation.is_temporary)
    ]
    if len(found) <= 1:
        return found[0] if found else None
    for relation in found:
        if relation.name == name and (not schema or relation.schema == schema):
            return relation
    exact = [relation for relation in found if relation.name == name]
    if len(exact) == 1:
        return exact[0]
    choices = ", ".join(f"{relation.schema}.{relation.name}" for relation in found)
    raise sql_error(50041, f"{schema}.{name}", choices)


def columns_of(relation: SourceRelation) -> Columns:
    """Columns by their names in lower case; of two that differ only in case, none."""
    lower: dict[str, tuple[str, str]] = {}
    twice: set[str] = set()
    for name, type_ in relation.columns.items():
        if name.lower() in lower:
            twice.add(name.lower())
        lower[name.lower()] = (name, type_)
    # What is written exactly is found all the same: `column_name` looks for that first.
    return {key: value for key, value in lower.items() if key not in twice} | {
        f"={name}": (name, type_) for name, type_ in relation.columns.items()
    }


def name_table(table: exp.Table, relation: SourceRelation) -> None:
    """Writes the relation's names into the tree, and keeps its columns there."""
    if not table.alias:
        needs_alias = isinstance(table.parent, exp.From | exp.Join)
        if needs_alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table_name(table)[1], quoted=True)))
    table.set("this", exp.to_identifier(relation.name, quoted=True))
    table.set("db", None if relation.is_temporary else exp.to_identifier(relation.schema, quoted=True))
    table.set("catalog", None)
    table.set("hints", None)
    table.meta[COLUMNS] = columns_of(relation)


def name_columns(tree: exp.Expr) -> None:
    """Writes columns as they were created; what is not found stays as it is, for the source to refuse."""
    # Inner ones first: outer queries see the names that inner ones give.
    for column in reversed(list(tree.find_all(exp.Column))):
        found = _find(column)
        if found is None:
            continue
        qualifier, name, _ = found
        if isinstance(column.this, exp.Identifier):
            column.set("this", exp.to_identifier(name, quoted=True))
        column.set("db", None)
        column.set("catalog", None)
        if qualifier is not None and column.args.get("table"):
            column.set("table", exp.to_identifier(qualifier, quoted=True))
    if isinstance(tree, exp.Alter):
        _name_in_actions(tree)
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("quoted", True)
        identifier.set("temporary", None)


def _name_in_actions(tree: exp.Alter) -> None:
    """Columns that ALTER TABLE changes and that its constraints name."""
    columns = tree.this.meta.get(COLUMNS, {})
    named = [node.this for node in tree.find_all(exp.AlterColumn)]
    for node in tree.find_all(exp.PrimaryKey, exp.ForeignKey, exp.UniqueColumnConstraint):
        own = node.this if isinstance(node.this, exp.Schema) else node
        named += own.expressions
    for node in named:
        identifier = node.this if isinstance(node, exp.Column) else node
        if isinstance(identifier, exp.Identifier) and (found := column_name(columns, identifier.name)):
            identifier.set("this", found[0])


def qualifier_of(column: exp.Column) -> str | None:
    """The alias of the table that has a column, in the nearest query that knows it."""
    found = _find(column)
    return None if found is None else found[0]


def column_type(column: exp.Column) -> str | None:
    """The type that the source has for a column; None where that is not known."""
    found = _find(column)
    return None if found is None else found[2]


def _find(column: exp.Column) -> tuple[str | None, str, str | None] | None:
    """(qualifier, name, type) in the nearest scope that has it."""
    qualifier, name = column.table.lower(), column.name
    node = column.parent
    around: set[int] = set()
    """Nodes that the column stands in: an applied query has no column from itself."""
    while node is not None:
        around.add(id(node))
        if isinstance(node, _SCOPES):
            for alias, columns in _sources(node, around):
                if qualifier and alias.lower() != qualifier:
                    continue
                if isinstance(column.this, exp.Star):
                    return alias, "*", None
                if (found := column_name(columns, name)) is not None:
                    return alias, *found
            if not qualifier and (label := _label(node, name)) is not None:
                return None, label, None
        node = node.parent
    return None


def column_name(columns: Columns, name: str) -> tuple[str, str] | None:
    """Name and type of a column as created, by its name in any case."""
    return columns.get(f"={name}") or columns.get(name.lower())


def _label(scope: exp.Expr, name: str) -> str | None:
    """An alias of the select list, which ORDER BY may use."""
    if not isinstance(scope, exp.Select):
        return None
    return next((each.alias for each in scope.expressions if each.alias.lower() == name.lower()), None)


def _sources(scope: exp.Expr, around: Collection[int] = ()) -> Iterator[tuple[str, Columns]]:
    for key in ("this", "table", "from_", "using", "joins", "laterals"):
        if key == "this" and isinstance(scope, exp.Select):
            continue
        found = scope.args.get(key)
        for each in found if isinstance(found, list) else [found]:
            if isinstance(each, exp.Expr):
                yield from _named(each, around)


def _named(node: exp.Expr, around: Collection[int]) -> Iterator[tuple[str, Columns]]:
    """Aliases and columns of tables, derived tables, and what they are joined with."""
    if isinstance(node, exp.From | exp.Join | exp.Schema | exp.Lateral) and not node.alias:
        yield from _named(node.this, around)
    elif (
        isinstance(node, exp.Table | exp.Subquery | exp.Lateral | exp.Values) and id(node.this) not in around
    ):
        yield node.alias_or_name, _columns(node)
    for join in node.args.get("joins") or ():
        yield from _named(join, around)


def _columns(node: exp.Expr) -> Columns:
    if isinstance(node, exp.Table):
        if COLUMNS in node.meta:
            return node.meta[COLUMNS]  # type: ignore[no-any-return]
        expression = _common_expression(node)
        return {} if expression is None else query_columns(expression.this, expression.args.get("alias"))
    if isinstance(node, exp.Subquery | exp.Lateral):
        return query_columns(node.this, node.args.get("alias"))
    return _labels(node.args.get("alias"))


def _labels(alias: object) -> Columns:
    names = [each.name for each in alias.columns] if isinstance(alias, exp.TableAlias) else []
    return {name.lower(): (name, "") for name in names}


def query_columns(query: exp.Expr, alias: object = None) -> Columns:
    """Names that a query gives its columns, and their types where they are columns as they are."""
    if labels := _labels(alias):
        return labels
    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    found: dict[str, tuple[str, str]] = {}
    for each in query.expressions if isinstance(query, exp.Select) else ():
        if isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star)):
            for _, columns in _sources(query):
                found |= columns
        elif each.alias_or_name:
            inner = each.this if isinstance(each, exp.Alias) else each
            type_ = column_type(inner) if isinstance(inner, exp.Column) else None
            found[each.alias_or_name.lower()] = (each.alias_or_name, type_ or "")
    return found


def each_table(tree: exp.Expr, find: Callable[[str, str], SourceRelation | None]) -> None:
    """Names every table of the tree. Raises 208; the source's functions are not to be called."""
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Func):
            raise sql_error(208, f"{table.db}.{table.this.name}" if table.db else str(table.this.name))
    for table in tables_of(tree):
        schema, name = table_name(table)
        relation = find(schema, name)
        if relation is None:
            raise sql_error(208, f"{table.db}.{table.name}" if table.db else name)
        name_table(table, relation)


def quoted_identifier(name: str) -> exp.Identifier:
    """A name that is written exactly so."""
    return exp.Identifier(this=name, quoted=True)


def quoted(name: str) -> str:
    """A name as the source is told it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as the source is told it."""
    return "'" + text.replace("'", "''") + "'"
