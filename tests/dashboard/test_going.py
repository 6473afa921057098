"""Where "Go to" leads, by what is chosen or typed; and the dialog in the whole app."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard import going, state
from dashboard.going import Target
from dashboard.navigation import SECTIONS
from dashboard.snapshot import DatabaseView
from engine.model.capture_instance import CaptureInstance
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanError
from engine.model.source_database import SourceDatabase
from engine.model.watermark import Watermarks
from tests.dashboard.conftest import Dashboard
from tests.dashboard.test_errors_page import an_error

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LOW, HIGH = Lsn.at(0x100), Lsn.at(0x200)


def an_instance(database: str, name: str, low: Lsn | None = LOW, schema: str = "public") -> CaptureInstance:
    return CaptureInstance(
        1, database, name, schema, name, 1, low, False, None, None, None, NOON, columns=(), index_columns=()
    )


def a_view(
    name: str, *instances: CaptureInstance, high: Lsn | None = HIGH, errors: tuple[ScanError, ...] = ()
) -> DatabaseView:
    database = SourceDatabase(1, name, "postgresql", f"postgresql:///{name}", True, NOON)
    marks = Watermarks(name, high, high, high, NOON, NOON)
    return DatabaseView(database, marks, instances, (), errors, None)


HR = a_view(
    "hr",
    an_instance("hr", "department"),
    an_instance("hr", "employee", low=Lsn.at(0x180)),
    an_instance("hr", "new", low=None),
    errors=(an_error(22863), an_error(22863), an_error(313)),
)
SALES = a_view("sales", an_instance("sales", "department"))
KNOWN = going.targets((SALES, HR), "hr")


def labels(text: str, instance: str | None = None) -> list[str]:
    return [target.label for target in going.found(text, KNOWN, HR, instance)]


def test_all_pages_come_first_then_this_database_then_the_others() -> None:
    names = [target.label for target in KNOWN]
    pages = [f"Page {title}" for pages in SECTIONS.values() for title, _icon in pages.values()]
    assert names[: len(pages)] == pages
    assert names[len(pages) :] == [
        "Table public.department, department",
        "Table public.employee, employee",
        "Table public.new, new",
        "Changes in department",
        "Changes in employee",
        "Changes in new",
        "Error 313",
        "Error 22863",
        "Table public.department, department of database sales",
        "Changes in department of database sales",
    ]
    assert len(set(names)) == len(names)


@given(st.sampled_from(KNOWN))
def test_a_label_leads_to_its_own_target_alone(target: Target) -> None:
    assert going.found(f" {target.label}", KNOWN, HR) == [target]


def test_parts_of_names_find_all_that_have_them() -> None:
    assert labels("EMPLOYEE table") == ["Table public.employee, employee"]
    assert labels("sales") == KNOWN_OF_SALES
    assert labels("nowhere") == []
    assert labels("  ") == []


KNOWN_OF_SALES = [target.label for target in KNOWN if target.database == "sales"]


@given(st.integers(0x180, 0x200))
def test_an_lsn_in_either_form_leads_to_its_changes_in_each_instance_that_has_it(position: int) -> None:
    lsn = Lsn.at(position)
    for text in (str(lsn), str(lsn).lower(), lsn.groups):
        found = going.found(text, KNOWN, HR, "employee")
        assert [target.parameters["c_ci"] for target in found] == ["employee", "department"]
        assert {target.database for target in found} == {"hr"}
        assert {(target.address["c_from"], target.address["c_to"]) for target in found} == {(str(lsn),) * 2}
        assert found[0].address["c_by"] == "Range"
        assert "c_key" not in found[0].address
        assert found[0].parameters["c_key"] == ""


@given(st.integers(0, 0x17F) | st.integers(0x201, 0x300))
def test_an_lsn_outside_of_validity_intervals_leads_nowhere(position: int) -> None:
    lsn = Lsn.at(position)
    valid = ["department"] if LOW <= lsn <= HIGH else []
    assert [each.parameters["c_ci"] for each in going.found(str(lsn), KNOWN, HR)] == valid
    assert "hr" in going.why_nothing(str(lsn), HR)


def test_why_nothing_was_found_is_said() -> None:
    assert "called that" in going.why_nothing("nowhere", HR)
    empty = a_view("hr", high=None)
    assert going.found(str(LOW), KNOWN, empty) == going.found(str(LOW), KNOWN, None) == []
    assert "Nothing was captured yet" in going.why_nothing(str(LOW), empty)


@pytest.mark.parametrize("text", ["22976", "Msg 22976", "error 22976", " ERROR22976 "])
def test_a_number_leads_to_the_errors_of_it_whether_there_are_any_or_not(text: str) -> None:
    [target] = going.found(text, KNOWN, HR)
    assert (target.page, target.address, target.database) == ("errors", {"e_no": "22976"}, "hr")


@given(st.text(max_size=40))
def test_whatever_is_typed_finds_something_or_says_why_not(text: str) -> None:
    assert going.found(text, KNOWN, HR) or going.why_nothing(text, HR)


# The dialog


def typed(dashboard: Dashboard, text: str) -> Any:
    """The box, in which what was typed need not be one of its options."""
    box = dashboard.test.selectbox(key="g_typed")
    box.options.append(text)
    return box


def go(dashboard: Dashboard, text: str) -> None:
    dashboard.test.button(key="go_to").click()
    dashboard.run()
    typed(dashboard, text).set_value(text)
    dashboard.run()


def title(dashboard: Dashboard) -> str:
    return str(dashboard.test.title[0].value)


def test_it_goes_to_a_page_and_to_an_error(tracked: str, dashboard: Dashboard) -> None:
    go(dashboard, "Page Cleanup")
    assert title(dashboard) == "Cleanup"
    assert not [each for each in dashboard.test.selectbox if each.key == "g_typed"]
    go(dashboard, "22976")
    assert title(dashboard) == "Errors"


def test_it_goes_to_a_table_on_whichever_page_one_is(tracked: str, dashboard: Dashboard) -> None:
    engine = state.home_engine()
    engine.enable_table(tracked, "public", "department", capture_instance="a_second", role_name=None)
    dashboard.run()
    for name in ("public_department", "a_second", "public_department"):
        go(dashboard, f"Table public.department, {name}")
        assert title(dashboard) == "Tables"
        assert f"## {name}" in dashboard.text


def test_what_matches_more_than_once_is_asked_for(tracked: str, dashboard: Dashboard) -> None:
    go(dashboard, "department")
    which = dashboard.test.selectbox(key="g_which")
    assert which.options == [
        "Table public.department, public_department",
        "Changes in public_department",
    ]
    typed(dashboard, "department")
    which.set_value("Changes in public_department")
    dashboard.run()
    assert title(dashboard) == "Changes"
    go(dashboard, str(LOW))
    assert "Nothing was captured yet" in dashboard.text
