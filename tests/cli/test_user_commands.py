"""highwater roles and activity over a real control database."""

from __future__ import annotations

import getpass
import json

import pytest
from typer.testing import CliRunner

from engine.cli.main import application
from engine.control import ControlDatabase
from engine.runtime.home import Home


@pytest.fixture
def highwater(tmp_path, control_dsn, monkeypatch):
    """Runs a command on a home of its own; its exit code, its output and what it says beside."""
    Home(tmp_path / "home").prepare()
    control = ControlDatabase.open(control_dsn)
    control.migrate()
    control.close()
    monkeypatch.setenv("HIGHWATER_CONTROL_DSN", control_dsn)

    def run(*arguments):
        done = CliRunner().invoke(application(), [*arguments, "--home", str(tmp_path / "home")])
        return done.exit_code, done.stdout, done.stderr

    return run


def test_roles_are_given_listed_and_taken(highwater):
    assert highwater("roles", "set", "ann@example.com", "viewer", "--principal", "reader") == (
        0,
        "ann@example.com is viewer now.\n",
        "",
    )
    _, printed, _ = highwater("roles", "list", "--format", "json")
    row = json.loads(printed)
    assert (row["name"], row["role"], row["principal"]) == ("ann@example.com", "viewer", "reader")
    assert row["changed_by"] == getpass.getuser()
    assert highwater("roles", "remove", "ann@example.com")[0] == 0
    code, _, said = highwater("roles", "remove", "ann@example.com")
    assert (code, said.split(",")[0]) == (1, "Msg 50111")
    assert highwater("roles", "set", "ann@example.com", "king")[0] == 2


def test_activity_says_who_did_what(highwater):
    highwater("roles", "set", "ann", "viewer")
    highwater("roles", "remove", "bob")
    _, printed, _ = highwater("activity", "--format", "json")
    failed, good = [json.loads(line) for line in printed.splitlines()]
    assert (good["user_name"], good["role"]) == (getpass.getuser(), "admin")
    assert good["statement"] == "EXEC highwater.set_role @name = N'ann', @role = N'viewer';"
    assert (good["outcome"], good["error_number"]) == ("ok", None)
    assert (failed["outcome"], failed["error_number"]) == ("failed", 50111)
    _, printed, _ = highwater("activity", "--user", "nobody")
    assert len(printed.splitlines()) == 2  # the heading and its rule
    _, printed, _ = highwater("activity", "--limit", "1")
    assert "EXEC highwater.drop_role @name = N'bob';" in printed
