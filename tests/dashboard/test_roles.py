"""What a role may not do its pages say, and who did what; the whole app, over a real control database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import streamlit as st

from dashboard import state
from dashboard.identity import LoopbackOnly, name_of
from engine.engine import Engine
from engine.model.alert import AlertHook
from engine.model.dashboard import DashboardSettings
from tests.dashboard.conftest import Dashboard

TABLE = "CREATE TABLE note (id int PRIMARY KEY, text text)"


@pytest.fixture
def hr(engine: Engine, connect: Callable[[str], str]) -> str:
    """A database with one captured table."""
    database = connect(TABLE)
    engine.enable_db(database)
    engine.enable_table(database, "public", "note", role_name=None)
    return database


@pytest.fixture
def as_role(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Dashboard]:
    """The app as somebody with this role opens it on this machine."""

    def opened(role: str) -> Dashboard:
        monkeypatch.setenv("HIGHWATER_DASHBOARD_ROLE", role)
        return Dashboard()

    return opened


def buttons_that_are_off(dashboard: Dashboard) -> dict[str, str]:
    return {each.label: each.help for each in dashboard.test.button if each.disabled}


def test_a_viewer_is_told_which_role_is_missing(hr: str, as_role: Callable[[str], Dashboard]) -> None:
    dashboard = as_role("viewer")
    dashboard.open("tables")
    off = buttons_that_are_off(dashboard)
    assert off["Enable tables"] == off["Disable"] == "Needs the role admin; yours is viewer."
    dashboard.open("capture")
    assert "Needs the role operator; yours is viewer." in buttons_that_are_off(dashboard).values()
    dashboard.open("settings")
    assert "Only an admin changes settings" in dashboard.text
    assert {"Give the role", "Save"} <= set(buttons_that_are_off(dashboard))
    assert not dashboard.test.number_input  # they are set with the hook, which may hold a secret


def test_an_operator_starts_and_tunes_and_enables_nothing(
    hr: str, as_role: Callable[[str], Dashboard]
) -> None:
    dashboard = as_role("operator")
    dashboard.open("tables")
    assert "Enable tables" in buttons_that_are_off(dashboard)
    dashboard.open("capture")
    assert "Needs the role" not in str(buttons_that_are_off(dashboard))


def test_the_header_says_who_is_here(hr: str, dashboard: Dashboard) -> None:
    assert "local admin" in dashboard.text


def test_an_admin_gives_and_takes_roles(engine: Engine, hr: str, dashboard: Dashboard) -> None:
    dashboard.open("settings")
    dashboard.field("u_name").set_value("ann@example.com")
    dashboard.field("u_role").set_value("operator")
    dashboard.field("u_principal").set_value("reader")
    dashboard.run()
    assert (
        "EXEC highwater.set_role @name = N'ann@example.com', @role = N'operator', "
        "@source_principal = N'reader';"
    ) in dashboard.code
    dashboard.click("u_give")
    [ann] = engine.users()
    assert (ann.name, ann.role, ann.principal) == ("ann@example.com", "operator", "reader")
    [written] = engine.activity(1)
    assert written.command == "set_role"


def test_downloads_are_switched_off_for_everybody(engine: Engine, hr: str, dashboard: Dashboard) -> None:
    dashboard.open("settings")
    dashboard.field("u_exports").set_value(False)
    dashboard.run()
    dashboard.click("u_save")
    assert engine.dashboard_settings() == DashboardSettings(exports=False)
    assert not state.snapshot().settings.exports
    dashboard.open("tables")
    assert st.get_option("client.disableDataExport")
    engine.set_dashboard_settings(DashboardSettings())
    dashboard.run()
    assert not st.get_option("client.disableDataExport")


def test_thresholds_are_set_and_the_hook_stays(engine: Engine, hr: str, dashboard: Dashboard) -> None:
    engine.set_alert_hook(AlertHook(command="/bin/true", lag_seconds=5))
    dashboard.open("settings")
    dashboard.field("u_lag_seconds").set_value(90)
    dashboard.run()
    dashboard.click("u_save_hook")
    assert engine.alert_hook() == AlertHook(command="/bin/true", lag_seconds=90)


def test_activity_lists_what_was_done_with_its_statement(
    engine: Engine, hr: str, dashboard: Dashboard
) -> None:
    dashboard.open("activity")
    [frame] = dashboard.test.dataframe
    assert list(frame.value["action"]) == ["enable_table", "enable_db", "connect"]
    assert set(frame.value["result"]) == {"ok"}
    assert "EXEC sys.sp_cdc_enable_table @source_schema = N'public'" in dashboard.code
    assert frame.value["user"][0] == engine.user().name
    dashboard.test.selectbox(key="a_result").set_value("failed")
    dashboard.run()
    assert "No action is like that." in dashboard.text


def test_activity_of_an_empty_home_says_so(dashboard: Dashboard) -> None:
    dashboard.open("activity")
    assert "Nothing was done yet" in dashboard.text


def test_a_statement_goes_into_the_console(hr: str, dashboard: Dashboard) -> None:
    dashboard.open("activity")
    dashboard.click("a_console")
    assert "sp_cdc_enable_table" in dashboard.test.session_state["q_text"]


# Who it is


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"email": " Ann@Example.com", "sub": "7"}, "ann@example.com"),
        ({"email": "ann@example.com", "email_verified": True, "sub": "7"}, "ann@example.com"),
        ({"email": "boss@example.com", "email_verified": False, "sub": "7"}, "7"),
        ({"email": "boss@example.com", "email_verified": "false", "sub": "7"}, "7"),
        ({"sub": "7"}, "7"),
        ({}, ""),
    ],
)
def test_a_user_is_the_verified_address_or_the_providers_key(claims: dict[str, object], name: str) -> None:
    assert name_of(claims) == name


async def _app(scope: object, receive: object, send: Callable[..., object]) -> None:
    await send({"type": "passed"})  # type: ignore[misc]


@pytest.mark.parametrize(
    ("client", "passes"),
    [
        (("127.0.0.1", 5), True),
        (("::1", 5), True),
        (("::ffff:127.0.0.1", 5), True),
        (None, True),
        (("192.0.2.7", 5), False),
        (("2001:db8::1", 5), False),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_without_a_login_only_this_machine_is_answered(
    kind: str, client: tuple[str, int] | None, passes: bool
) -> None:
    sent: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    scope = {"type": kind, "client": client, "headers": [], "method": "GET", "path": "/"}
    answer = LoopbackOnly(_app)(scope, receive, send)  # type: ignore[arg-type]
    with ThreadPoolExecutor(1) as alone:  # a browser that other tests use has a loop in this thread
        alone.submit(asyncio.run, answer).result()
    if passes:
        assert [each["type"] for each in sent] == ["passed"]
    else:
        assert sent[0].get("status") == 403 or sent[0] == {"type": "websocket.close", "code": 1008}
