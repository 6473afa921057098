"""Errors on their page: grouped, with cause, fix and the way to the changes around them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from dashboard.error_groups import grouped, lsn_of, phase_text, place_of
from engine.control import ControlDatabase
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanError
from tests.dashboard.conftest import Dashboard

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NONE = Lsn.ZERO.groups


def an_error(number: int = 22863, phase: int = 5, minute: int = 0, **values: object) -> ScanError:
    given_values: dict[str, object] = {
        "session_id": 7,
        "phase_number": phase,
        "entry_time": NOON + timedelta(minutes=minute),
        "error_number": number,
        "error_severity": 16,
        "error_state": 1,
        "error_message": f"Message {number} of minute {minute}.",
        "start_lsn": "00000000:0000ab10:0000",
        "begin_lsn": "00000000:0000ab20:0000",
        "sequence_value": NONE,
    }
    return ScanError(**(given_values | values))  # type: ignore[arg-type]


errors = st.builds(an_error, st.integers(1, 3), st.integers(0, 3), st.integers(0, 100))


@given(st.lists(errors))
def test_groups_hold_every_error_once_the_newest_first(found: list[ScanError]) -> None:
    groups = grouped(found)
    kept = [error for group in groups for error in group.errors]
    assert sorted(kept, key=repr) == sorted(found, key=repr)
    assert len({(group.number, group.phase) for group in groups}) == len(groups)
    for group in groups:
        assert {(e.error_number, e.phase_number) for e in group.errors} == {(group.number, group.phase)}
        assert group.first.entry_time <= group.newest.entry_time
    newest = [group.newest.entry_time for group in groups]
    assert newest == sorted(newest, reverse=True)


def test_the_place_of_an_error_is_its_most_exact_lsn() -> None:
    assert place_of(an_error()) == lsn_of("00000000:0000ab20:0000")
    assert place_of(an_error(sequence_value="00000000:0000ab30:0002")) == Lsn.at(0xAB30, 2)
    assert place_of(an_error(start_lsn="0", begin_lsn=NONE)) is None
    assert phase_text(5) == "5 writing rows"
    assert phase_text(0) == "outside of a scan session"


def test_without_errors_the_page_says_so(tracked: str, dashboard: Dashboard) -> None:
    dashboard.open("errors")
    assert "No errors of hr" in "\n".join(str(each.value) for each in dashboard.test.success)
    assert [title.value for title in dashboard.test.title] == ["Errors"]


def test_an_error_has_its_whole_message_cause_fix_phase_and_lsn(
    tracked: str, dashboard: Dashboard, control_dsn: str
) -> None:
    control = ControlDatabase.open(control_dsn)
    message = "Column 'name' of capture instance 'public_department' changed."
    for minute in range(3):
        control.errors.add("hr", an_error(22976, 6, minute, error_message=message))
    control.errors.add("hr", an_error(22863, 5, 9, error_message="Disk full."))
    control.errors.add("hr", an_error(22924, 0, 1, session_id=0, start_lsn=NONE, begin_lsn=NONE))
    control.close()

    dashboard.open("errors")
    assert "Msg 22863, Level 16, State 1" in dashboard.text  # the newest
    assert "Disk full." in dashboard.code
    assert "5 writing rows" in dashboard.text
    dashboard.test.selectbox("e_no").set_value("22976")
    dashboard.run()
    for said in ("goes on", "3 times", "6 schema versioning", "0x000000000000AB200000", "another type"):
        assert said in dashboard.text, said
    assert message in dashboard.code
    assert "highwater disable -d hr public.department" in dashboard.code
    dashboard.test.selectbox("e_no").set_value("22924")
    dashboard.run()
    assert "outside of a scan session" in dashboard.text
    assert "No place in the log belongs to it" in dashboard.text
    assert "highwater cleanup start -d hr" in dashboard.code


def test_a_number_in_the_address_that_is_gone_is_said(
    tracked: str, dashboard: Dashboard, control_dsn: str
) -> None:
    control = ControlDatabase.open(control_dsn)
    control.errors.add("hr", an_error(22863))
    control.close()
    dashboard.test.query_params["e_no"] = "1"
    dashboard.open("errors")
    assert "There is no error 1 any more" in dashboard.text
    assert "Msg 22863" in dashboard.text


def test_the_selected_group_stays_when_a_newer_error_comes_on_top(
    tracked: str, dashboard: Dashboard, control_dsn: str
) -> None:
    control = ControlDatabase.open(control_dsn)
    control.errors.add("hr", an_error(22863, 5, 1, error_message="Disk full."))
    control.errors.add("hr", an_error(22976, 6, 2, error_message="No number."))
    dashboard.open("errors")
    assert "Msg 22976" in dashboard.text
    dashboard.test.session_state["e_groups"] = {"selection": {"rows": [1]}}
    dashboard.run()
    assert "Msg 22863" in dashboard.text
    control.errors.add("hr", an_error(22924, 0, 3, session_id=0, start_lsn=NONE, begin_lsn=NONE))
    control.close()
    dashboard.run()
    assert "Msg 22863" in dashboard.text
    assert dashboard.test.session_state["e_groups"]["selection"]["rows"] == [2]
