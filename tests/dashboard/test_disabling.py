"""The dialog that disables a capture instance: what it says goes, who it says reads, and that it waits."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from dashboard import state
from engine.engine import Engine
from engine.errors import CdcError, TableNotTracked
from tests.dashboard.conftest import PATIENCE, Dashboard


@pytest.fixture
def tracked(engine: Engine, connect: Callable[[str], str]) -> str:
    """A database with two tracked tables; no agent has read its log yet."""
    name = connect(
        "CREATE TABLE department (id int PRIMARY KEY, name text); CREATE TABLE note (said text);"
        "DO $$ BEGIN IF to_regrole('readers') IS NULL THEN CREATE ROLE readers; END IF; END $$"
    )
    engine.enable_db(name)
    engine.enable_table(name, "public", "department", role_name="readers")
    engine.enable_table(name, "public", "note", role_name=None)
    return name


def asked(dashboard: Dashboard, instance: str) -> str:
    """What the dialog says of an instance; it is open then."""
    dashboard.test.query_params["t_ci"] = instance
    dashboard.open("tables")
    dashboard.click("t_disable")
    dashboard.wait()
    return dashboard.text


def test_what_goes_and_who_reads_it_is_said(tracked: str, dashboard: Dashboard, engine: Engine) -> None:
    engine.register_client(tracked, "warehouse", "public_department")
    said = asked(dashboard, "public_department")
    assert "the change table `cdc.public_department_CT` with all its rows (**no rows yet" in said
    assert "fn_cdc_get_net_changes_public_department" in said
    assert "the registration of 1 client" in said
    assert "1 registered client; members of `readers` may read it" in said
    assert "last instance" not in said
    assert "@capture_instance = N'public_department'" in dashboard.code


def test_the_last_instance_takes_both_jobs_along(tracked: str, dashboard: Dashboard, engine: Engine) -> None:
    engine.disable_table(tracked, "public", "department", "public_department")
    said = asked(dashboard, "public_note")
    assert "fn_cdc_get_net_changes" not in said
    assert "no client is registered; whoever may read the source columns may read it" in said
    assert "the capture job `cdc.hr_capture` and the cleanup job `cdc.hr_cleanup`, since this is" in said


def test_the_name_is_typed_first_and_the_page_never_waits_for_the_source(
    tracked: str, dashboard: Dashboard, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()
    disable = Engine.disable_table

    def slow(*arguments: str) -> None:
        assert may_go_on.wait(PATIENCE)
        disable(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Engine, "disable_table", slow)
    asked(dashboard, "public_note")
    assert dashboard.test.button("disable_confirm").disabled
    dashboard.test.text_input("disable_name").input("public_note")
    dashboard.run()
    dashboard.test.button("disable_confirm").click()
    dashboard.run()
    assert "Disabling public\\_note, since" in dashboard.text
    dashboard.run()
    assert dashboard.test.button("disable_confirm").disabled
    [operation] = state.dialog_runs().active()
    may_go_on.set()
    assert operation.wait(PATIENCE)
    dashboard.run()
    assert "disable_confirm" not in [button.key for button in dashboard.test.button]
    assert [each.capture_instance for each in engine.help_change_data_capture(tracked)] == [
        "public_department"
    ]


def test_why_it_failed_is_said_and_it_can_be_tried_again(
    tracked: str, dashboard: Dashboard, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: str) -> None:
        raise TableNotTracked("public", "note")

    with monkeypatch.context() as patched:
        patched.setattr(Engine, "disable_table", refuse)
        asked(dashboard, "public_note")
        dashboard.test.text_input("disable_name").input("public_note")
        dashboard.run()
        dashboard.click("disable_confirm")
        assert "disabling public_note" in dashboard.text
        assert not dashboard.test.button("disable_confirm").disabled
    dashboard.click("disable_confirm")
    with pytest.raises(CdcError):
        engine.get_captured_columns(tracked, "public_note")
