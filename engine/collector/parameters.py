"""The parameter XML of a collection item: queries, output tables, databases. Pure.

What the Generic T-SQL Query collector type takes. Queries are ``SELECT *`` of one of the views of
`engine.collector.views`: anything else is refused when the item is made, not when it is collected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from engine.collector.views import VIEWS, CollectedView, view_named
from engine.errors import CollectionParametersInvalid

_ROOT = "TSQLQueryCollector"
_QUERY = re.compile(r"\s*SELECT\s+\*\s+FROM\s+([\w.\[\]\"]+)\s*;?\s*", re.IGNORECASE)
_LONGEST_NAME = 128
_TRUE = ("true", "1")


@dataclass(frozen=True, slots=True)
class CollectedQuery:
    """One query: what is read, and the table of custom_snapshots that it goes to."""

    view: CollectedView
    output_table: str


@dataclass(frozen=True, slots=True)
class ItemParameters:
    """Queries, and the databases that they are asked of: None for every one that is enabled."""

    queries: tuple[CollectedQuery, ...]
    databases: frozenset[str] | None

    def takes(self, database: str) -> bool:
        """Whether a database, in any case of its name, is asked."""
        return self.databases is None or database.lower() in self.databases


def parse_parameters(text: str | None) -> ItemParameters:
    """What the XML says. Raises CollectionParametersInvalid."""
    root = _root(text or "")
    queries = tuple(_query(element) for element in root if _name(element) == "Query")
    if not queries:
        raise CollectionParametersInvalid("it has no <Query>")
    for element in root:
        if _name(element) not in ("Query", "Databases"):
            raise CollectionParametersInvalid(f"<{_name(element)}> is not known here")
    tables = [query.output_table for query in queries]
    if len(set(tables)) < len(tables):
        raise CollectionParametersInvalid("two queries have the same <OutputTable>")
    return ItemParameters(queries, _databases([each for each in root if _name(each) == "Databases"]))


def parameters_of(queries: Sequence[tuple[str, str]]) -> str:
    """The XML for (view, output table) pairs, of every enabled database."""
    parts = (
        f"<Query><Value>SELECT * FROM {escape(view)}</Value>"
        f"<OutputTable>{escape(table)}</OutputTable></Query>"
        for view, table in queries
    )
    return f"<{_ROOT}>{''.join(parts)}</{_ROOT}>"


def output_tables(parameters: Sequence[str]) -> list[str]:
    """The output tables that items' parameters name, each once."""
    names = [query.output_table for text in parameters for query in parse_parameters(text).queries]
    return list(dict.fromkeys(names))


def _root(text: str) -> ElementTree.Element:
    if "<!DOCTYPE" in text:
        raise CollectionParametersInvalid("a document type has no place in it")
    try:
        # Entities, by which a short text becomes a huge one, need the document type that was refused.
        root = ElementTree.fromstring(text)  # nosec B314
    except ElementTree.ParseError as error:
        raise CollectionParametersInvalid(f"it is no XML: {error}") from error
    if _name(root) != _ROOT:
        raise CollectionParametersInvalid(f"its element is <{_name(root)}>, not <{_ROOT}>")
    return root


def _name(element: ElementTree.Element) -> str:
    """The name without its namespace; schemas of the original have ``DataCollectorType``."""
    return element.tag.rpartition("}")[2]


def _text(element: ElementTree.Element, name: str) -> str:
    found = [each for each in element if _name(each) == name]
    text = "".join(found[0].itertext()).strip() if len(found) == 1 else ""
    if not text:
        raise CollectionParametersInvalid(f"a <Query> needs one <{name}>")
    return text


def _query(element: ElementTree.Element) -> CollectedQuery:
    value, table = _text(element, "Value"), _text(element, "OutputTable")
    matched = _QUERY.fullmatch(value)
    view = None if matched is None else view_named(re.sub(r'[\[\]"]', "", matched[1]))
    if view is None:
        known = ", ".join(each.name for each in VIEWS)
        raise CollectionParametersInvalid(f"'{value}' is no SELECT * FROM one of {known}")
    if len(table) > _LONGEST_NAME or not table.isprintable():
        raise CollectionParametersInvalid(f"'{table}' is no name of a table")
    return CollectedQuery(view, table.lower())


def _databases(elements: Sequence[ElementTree.Element]) -> frozenset[str] | None:
    names: set[str] = set()
    for element in elements:
        if element.get("UseUserDatabases", "").lower() in _TRUE:
            return None
        names |= {("".join(each.itertext())).strip().lower() for each in element if _name(each) == "Database"}
    # The page asks system databases where none is named; there are none of these here.
    return None if not names or "*" in names else frozenset(names)
