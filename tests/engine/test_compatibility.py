"""docs/compatibility.md says what is there: each row is held against the code it names."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from sqlalchemy import Table

import engine
from engine.engine import Engine
from engine.errors import CdcError
from engine.lake.tables import change_table_schema
from tests.control.conftest import an_instance

ROOT = Path(__file__).parents[2]
VERDICTS = ("works", "differs", "no meaning", "not yet")
THERE = ("works", "differs")
OURS = 50000
"""Numbers from here on are not the original's."""
SCRIPT = "enable.sql"
PROGRAMS = ("__main__", "env")
"""Modules that do something when they are imported."""


@dataclass(frozen=True)
class Row:
    """A row of the document: the heading above its table, its table's first heading, its cells."""

    section: str
    kind: str
    entry: str
    verdict: str
    cells: tuple[str, ...]

    @property
    def place(self) -> list[str]:
        """What stands between back quotes in the cell after the verdict."""
        return quoted(self.cells[0])


def quoted(text: str) -> list[str]:
    return re.findall("`([^`]+)`", text)


def rows_of(document: str) -> Iterator[Row]:
    section = kind = ""
    for line in document.splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ")
        if not line.startswith("|"):
            continue
        first, verdict, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if verdict == "Verdict":
            kind = first
        elif not verdict.startswith("---"):
            yield Row(section, kind, first.strip("`"), verdict, tuple(cells))


ROWS = list(rows_of((ROOT / "docs" / "compatibility.md").read_text()))
CALLS = [row for row in ROWS if row.kind in ("Procedure", "Function", "Table", "View")]
COLUMNS = [row for row in ROWS if row.kind == "Column"]
ERRORS = {int(row.entry): row for row in ROWS if row.kind == "Error"}


def name_of(row: Row) -> str:
    return f"{row.section}: {row.entry}"


def numbers_of_the_code() -> dict[int, set[str]]:
    """Names of error classes by number, of every module of the engine."""
    for module in pkgutil.walk_packages(engine.__path__, "engine."):
        if module.name.rpartition(".")[2] not in PROGRAMS:
            import_module(module.name)
    found: dict[int, set[str]] = defaultdict(set)
    rest = CdcError.__subclasses__()
    while rest:
        error = rest.pop()
        rest += error.__subclasses__()
        if error.__module__.startswith("engine."):
            found[error.number].add(error.__name__)
    return found


NUMBERS = numbers_of_the_code()
CLASSES = set().union(*NUMBERS.values())
REFUSED_AT_THE_SOURCE = {
    int(number)
    for number in re.findall(r"'Msg (\d+),", (ROOT / "engine" / "sources" / "postgres" / SCRIPT).read_text())
}


def test_the_document_has_entries_of_every_kind() -> None:
    kinds = {row.kind for row in ROWS}
    assert kinds == {"Procedure", "Function", "Table", "View", "Column", "Error"}
    assert len(ERRORS) == sum(row.kind == "Error" for row in ROWS), "an error has two rows"


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_a_verdict_is_one_of_four_and_has_its_reason(row: Row) -> None:
    assert row.verdict in VERDICTS
    assert row.cells[-1] or row.verdict == "works"


@pytest.mark.parametrize("row", CALLS, ids=name_of)
def test_what_is_there_is_a_method_with_these_parameters(row: Row) -> None:
    method, parameters = row.place, quoted(row.cells[1])
    if row.verdict not in THERE:
        assert (method, parameters) == ([], [])
        return
    [name] = method
    signature = inspect.signature(inspect.getattr_static(Engine, name))
    static = isinstance(inspect.getattr_static(Engine, name), staticmethod)
    assert parameters == list(signature.parameters)[0 if static else 1 :]


@pytest.mark.parametrize("row", [row for row in COLUMNS if row.verdict in THERE], ids=name_of)
def test_a_column_that_is_there_is_where_the_document_says(row: Row) -> None:
    [here] = row.place
    places = [place for place in quoted(row.section) if place.startswith("engine.")]
    assert any(here in names_at(place) for place in places)
    if row.verdict == "works" and not any(isinstance(found(place), ModuleType) for place in places):
        assert here == row.entry.rpartition(".")[2]


def found(path: str) -> object:
    """The module, or the module's attribute, at a dotted path."""
    try:
        return import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(import_module(module), name)


def names_at(path: str) -> set[str]:
    """Names of columns: of a table, a schema, a tuple, a row's type; of a module, what it defines."""
    place = found(path)
    if place is change_table_schema:
        place = change_table_schema(an_instance())
    if isinstance(place, Table):
        return set(place.columns.keys())
    if isinstance(place, pa.Schema):
        return set(place.names)
    return set(place) if isinstance(place, tuple) else set(dir(place))


def test_every_number_of_the_code_is_in_the_document_with_its_classes() -> None:
    there = {number: row.place for number, row in ERRORS.items() if row.verdict in THERE}
    for number in {number for number in NUMBERS if number < OURS}:
        assert NUMBERS[number] <= set(there.get(number, ())), f"{number}: {NUMBERS[number]}"
    for number in {number for number in REFUSED_AT_THE_SOURCE if number < OURS}:
        assert SCRIPT in there.get(number, ()), number


@pytest.mark.parametrize("row", ERRORS.values(), ids=name_of)
def test_an_error_that_is_there_is_in_the_code(row: Row) -> None:
    number = int(row.entry)
    if row.verdict not in THERE:
        assert row.place == []
        assert number not in NUMBERS
        return
    assert set(row.place) <= CLASSES | {SCRIPT}
    assert row.place
    if row.verdict == "works":
        of_number = NUMBERS[number] | ({SCRIPT} if number in REFUSED_AT_THE_SOURCE else set())
        assert set(row.place) == of_number


@pytest.mark.parametrize("row", [row for row in ERRORS.values() if row.verdict == "differs"], ids=name_of)
def test_an_error_that_differs_in_its_number_says_so(row: Row) -> None:
    numbers = {number for number, names in NUMBERS.items() if names & set(row.place)}
    if SCRIPT in row.place:
        numbers |= REFUSED_AT_THE_SOURCE
    assert (
        int(row.entry) in numbers
        or {int(number) for number in re.findall(r"\b\d{3,5}\b", row.cells[-1])} & numbers
    )
