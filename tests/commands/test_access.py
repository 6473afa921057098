"""Who may call what: no method of `Engine` is forgotten, and roles contain each other."""

from __future__ import annotations

import inspect

import pytest

from engine.commands.access import ACCESS, FORGOTTEN, Command, Read, access_to, least_role
from engine.engine import Engine
from engine.model.user import NOBODY, Role, User

METHODS = {name for name, _ in inspect.getmembers(Engine, callable) if not name.startswith("_")}
ADMINS = {
    "connect", "disconnect", "dsn", "enable_db", "disable_db", "enable_table", "disable_table",
    "cleanup_change_table", "register_client", "drop_client", "add_job", "drop_job", "update_job_step",
    "alert_hook", "set_alert_hook", "test_alert_hook", "set_role", "drop_role", "set_dashboard_settings",
}  # fmt: skip
OPERATORS = {
    "scan", "sync", "cleanup", "compact", "acknowledge", "start_job", "stop_job", "change_job", "collect",
    "create_collection_set", "create_collection_item", "start_collection_set", "stop_collection_set",
    "update_collection_set", "delete_collection_set", "run_demo",
}  # fmt: skip


def test_every_public_method_of_the_engine_is_classified():
    assert set(ACCESS) == METHODS


def test_a_method_that_is_forgotten_is_an_admins():
    assert access_to("launch_the_rocket") is FORGOTTEN
    assert least_role("launch_the_rocket", {}) is Role.ADMIN


@pytest.mark.parametrize("name", sorted(METHODS))
def test_the_least_role_of_each_method(name):
    expected = Role.ADMIN if name in ADMINS else Role.OPERATOR if name in OPERATORS else Role.VIEWER
    assert least_role(name, {}) is expected


def test_a_viewer_changes_nothing_but_begins_downloads():
    assert {
        name for name, access in ACCESS.items() if isinstance(access, Command) and access.least is Role.VIEWER
    } == {"begin_export"}


@pytest.mark.parametrize("name", ["retention", "threshold", "schedule"])
def test_how_long_changes_are_kept_is_an_admins_to_say(name):
    assert least_role("change_job", {"job_type": "cleanup", name: 5}) is Role.ADMIN
    assert least_role("change_job", {"job_type": "capture", "maxtrans": 5}) is Role.OPERATOR


def test_whoever_asks_for_rows_of_changes_is_asked_for_a_principal():
    """What gives rows or columns of change tables takes a principal, and it is the user's."""
    of_data = {name for name, access in ACCESS.items() if isinstance(access, Read) and access.of_data}
    asked = {name for name in METHODS if "principal" in inspect.signature(getattr(Engine, name)).parameters}
    assert of_data <= asked
    assert {name for name in asked if name.startswith(("get_", "all_", "net_", "change_"))} - of_data == {
        "change_job"
    }


@pytest.mark.parametrize("role", Role)
def test_a_role_covers_itself_and_those_below(role):
    below = list(Role)[: list(Role).index(role) + 1]
    assert [least for least in Role if role.covers(least)] == below
    assert [least for least in Role if User("sam", role).may(least)] == below
    assert not User("sam", None).may(role)


def test_whose_change_data_a_user_reads():
    assert User("sam", Role.ADMIN).reads_as is None
    assert User("sam", Role.ADMIN, "auditor").reads_as == "auditor"
    assert User("sam", Role.VIEWER, "auditor").reads_as == "auditor"
    assert User("sam", Role.OPERATOR).reads_as == User("sam", Role.VIEWER).reads_as == NOBODY
