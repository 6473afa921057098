"""The page Schema without an agent: what it says, and the wizard as far as it goes without one."""

from __future__ import annotations

from dashboard import state
from engine.engine import Engine
from tests.dashboard.conftest import PATIENCE, Dashboard


def test_without_ddl_there_is_nothing_to_do(tracked: str, dashboard: Dashboard) -> None:
    dashboard.open("schema")
    assert "None yet. ALTER TABLE of a captured table" in dashboard.text
    assert "Every instance captures its table as it is" in dashboard.text
    assert "is the only instance, and captures the table as it is" in "\n".join(
        str(each.value) for each in dashboard.test.success
    )


def test_a_second_instance_is_made_and_waited_for_by_whoever_looks(
    tracked: str, dashboard: Dashboard, engine: Engine
) -> None:
    dashboard.open("schema")
    assert "@capture_instance = N'public_department_v2'" in dashboard.code
    dashboard.click("s_create")
    (first,) = (i for i in engine.help_change_data_capture("hr") if i.capture_instance == "public_department")
    operation = state.all_operations().get(f"second:hr:{first.object_id}")
    assert operation is not None
    assert operation.wait(PATIENCE)
    names = {each.capture_instance for each in engine.help_change_data_capture("hr")}
    assert names == {"public_department", "public_department_v2"}

    other = Dashboard()
    for viewer in (dashboard, other):
        viewer.open("schema")
        assert "It can be read from once capture has met it in the log" in viewer.text
        assert "Create the second instance" not in viewer.buttons


def test_why_no_second_instance_was_made_is_said(tracked: str, dashboard: Dashboard, engine: Engine) -> None:
    dashboard.open("schema")
    engine.enable_table("hr", "public", "department", role_name=None, capture_instance="other")
    dashboard.test.button("s_create").click()
    dashboard.test.run()
    (first, *_) = engine.help_change_data_capture("hr")
    operation = state.all_operations().get(f"second:hr:{first.object_id}")
    assert operation is not None
    assert operation.wait(PATIENCE)
    assert operation.result[0].error.startswith("Msg 22962")


def test_a_table_in_the_address_that_is_not_captured_is_said(tracked: str, dashboard: Dashboard) -> None:
    dashboard.test.query_params["s_table"] = "public.gone"
    dashboard.open("schema")
    assert "is not captured: every table is shown" in dashboard.text
