"""Where "Go to" leads: pages, capture instances, LSNs, error numbers, by what is chosen or typed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dashboard.navigation import SECTIONS
from dashboard.snapshot import DatabaseView
from engine.model.capture_instance import CaptureInstance
from engine.model.lsn import Lsn

_NUMBER = re.compile(r"(?:(?:msg|error)\s*)?(\d{1,9})", re.IGNORECASE)
UNFILTERED: Mapping[str, str | list[str]] = {"c_op": [], "c_col": "", "c_key": "", "c_text": ""}
"""What would hide changes of an LSN that the explorer is asked for."""


@dataclass(frozen=True, slots=True)
class Target:
    """A place: its name in the list, the page, what the page's parameters become; database: the header's."""

    label: str
    page: str
    parameters: Mapping[str, str | list[str]] = field(default_factory=dict)
    database: str | None = None

    @property
    def address(self) -> dict[str, str]:
        """The parameters that belong into the address."""
        return {name: value for name, value in self.parameters.items() if isinstance(value, str) and value}


def targets(databases: Sequence[DatabaseView], here: str | None) -> list[Target]:
    """All that can be chosen by name: pages, then what the database ``here`` has, then that of the others."""
    ordered = sorted(databases, key=lambda view: (view.name != here, view.name))
    return [*_pages(), *(target for view in ordered for target in _of(view, view.name == here))]


def _pages() -> Iterator[Target]:
    for pages in SECTIONS.values():
        for name, (title, _icon) in pages.items():
            yield Target(f"Page {title}", name)


def _of(view: DatabaseView, is_here: bool) -> Iterator[Target]:
    place = "" if is_here else f" of database {view.name}"
    instances = sorted(view.instances, key=_by_table)
    for each in instances:
        table = f"{each.source_schema}.{each.source_table}"
        label = f"Table {table}, {each.capture_instance}{place}"
        yield Target(label, "tables", {"t_ci": each.capture_instance}, view.name)
    for each in instances:
        label = f"Changes in {each.capture_instance}{place}"
        yield Target(label, "changes", {"c_ci": each.capture_instance}, view.name)
    for number in sorted({error.error_number for error in view.errors}):
        yield _error(number, view.name, place)


def _by_table(instance: CaptureInstance) -> tuple[str, str, int]:
    return instance.source_schema, instance.source_table, instance.object_id


def _error(number: int, database: str | None, place: str = "") -> Target:
    return Target(f"Error {number}{place}", "errors", {"e_no": str(number)}, database)


def found(
    text: str, known: Sequence[Target], view: DatabaseView | None, instance: str | None = None
) -> list[Target]:
    """What a text means: the target of that name, an LSN's changes, an error number, else names that match.

    view: the database that LSNs and numbers belong to. instance: the capture instance that is looked at, the
    first of those that have an LSN in their validity interval.
    """
    wanted = text.strip()
    exact = [target for target in known if target.label == wanted]
    if exact or not wanted:
        return exact
    if (lsn := _lsn(wanted)) is not None:
        return [] if view is None else _changes_of(lsn, view, instance)
    if number := _NUMBER.fullmatch(wanted):
        return [_error(int(number[1]), None if view is None else view.name)]
    words = wanted.casefold().split()
    return [target for target in known if all(word in target.label.casefold() for word in words)]


def why_nothing(text: str, view: DatabaseView | None) -> str:
    """Why nothing was found by this text."""
    if _lsn(text) is None:
        return "No page, table or capture instance is called that; an LSN is 0x and 20 hex digits, or 8:8:4."
    if view is None or view.watermarks.high is None:
        return "Nothing was captured yet, so there are no changes of any LSN."
    return f"No capture instance of {view.name} has this LSN in its validity interval."


def _lsn(text: str) -> Lsn | None:
    try:
        return Lsn.parse(text)
    except ValueError:
        return None


def _changes_of(lsn: Lsn, view: DatabaseView, instance: str | None) -> list[Target]:
    high = view.watermarks.high
    valid = [
        each.capture_instance
        for each in view.instances
        if high is not None and each.start_lsn is not None and each.start_lsn <= lsn <= high
    ]
    ordered = sorted(valid, key=lambda name: (name != instance, name))
    return [Target(f"Changes in {name} at {lsn}", "changes", _at(lsn, name), view.name) for name in ordered]


def _at(lsn: Lsn, instance: str) -> dict[str, str | list[str]]:
    place = str(lsn)
    return {
        "c_ci": instance,
        "c_mode": "All",
        "c_opt": "all update old",
        "c_by": "Range",
        "c_from": place,
        "c_to": place,
        **UNFILTERED,
    }
