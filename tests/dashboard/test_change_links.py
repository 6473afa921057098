"""Addresses of the explorer: what a question and a change become."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from dashboard.change_links import address, of_change, of_page
from dashboard.changes import Change, place_of, place_text
from dashboard.reading import ChangeFilter, ChangePage, ChangeQuery
from engine.model.capture_instance import CaptureInstance
from engine.model.change import Operation
from engine.model.lsn import Lsn
from tests.lake.change_tables import capture_instance

INSTANCE: CaptureInstance = capture_instance({"id": "int"}, ["id"])
FIRST, SECOND = "0x00000000000000000001", "0x00000000000000000002"


def _change(start: str, seqval: str | None = SECOND) -> Change:
    name = INSTANCE.capture_instance
    return Change(name, Operation.INSERT, start, seqval, None, None, None, {"id": 1}, ())


def _page(*changes: Change) -> ChangePage:
    return ChangePage(changes, Lsn.parse(FIRST), Lsn.parse("0x00000000000000000009"), 0, False)


def _query(last: int | None, chosen: ChangeFilter) -> ChangeQuery:
    return ChangeQuery(INSTANCE, False, "all", None, None, last, chosen)


def _asked(parameters: object) -> dict[str, list[str]]:
    assert isinstance(parameters, dict)
    return parse_qs(urlsplit(address("http://here/changes?c_n=50", parameters)).query)


def test_a_link_has_every_filter():
    operations = (Operation.UPDATE_OLD, Operation.UPDATE_NEW, Operation.DELETE)
    asked = _asked(of_page(_query(None, ChangeFilter(operations, "id", "id=4 & 5", "a=b")), _page()))
    assert asked["c_op"] == ["update", "delete"]
    assert (asked["c_col"], asked["c_key"], asked["c_text"]) == (["id"], ["id=4 & 5"], ["a=b"])
    assert (asked["c_from"], asked["c_to"]) == ([FIRST], ["0x00000000000000000009"])


def test_what_is_not_filtered_is_not_in_it():
    assert set(_asked(of_page(_query(None, ChangeFilter()), _page()))) == {
        "db", "c_ci", "c_mode", "c_opt", "c_by", "c_from", "c_to",
    }  # fmt: skip


def test_the_newest_rows_are_asked_for_from_the_first_to_the_last():
    asked = _asked(of_page(_query(50, ChangeFilter()), _page(_change(SECOND), _change(FIRST))))
    assert (asked["c_from"], asked["c_to"]) == ([FIRST], [SECOND])


def test_a_change_is_asked_for_in_its_transaction():
    asked = _asked(of_change(_change(FIRST), "hr"))
    assert (asked["c_from"], asked["c_to"], asked["c_opt"]) == ([FIRST], [FIRST], ["all update old"])
    assert place_of(asked["c_sel"][0]) == (FIRST, SECOND)
    assert "c_sel" not in _asked(of_change(_change(FIRST, None), "hr"))


@pytest.mark.parametrize("text", ["", "-", FIRST, f"{FIRST}-", f"{FIRST}-x", f"{FIRST}-{SECOND}-{SECOND}"])
def test_what_is_no_place_leads_nowhere(text):
    assert place_of(text) is None


def test_a_place_is_read_as_it_was_written():
    assert place_of(place_text((FIRST, SECOND))) == (FIRST, SECOND)
