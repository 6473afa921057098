"""Commands about sources, over a real source and control database."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from engine.cli.main import application
from engine.control import ControlDatabase


@pytest.fixture
def run(tmp_path, control_dsn):
    """Runs a command on a home whose control database is ready; its exit code, stdout and stderr."""
    control = ControlDatabase.open(control_dsn)
    control.migrate()
    control.close()
    (tmp_path / "highwater.toml").write_text(f"control_dsn = '{control_dsn}'\n")

    def run(*arguments):
        result = CliRunner().invoke(application(), [*arguments, "--home", str(tmp_path)])
        return result.exit_code, result.stdout, result.stderr

    return run


def test_a_source_is_connected_and_disconnected(run, source_dsn):
    assert run("connect", "my shop", source_dsn)[:2] == (0, "Database 'my shop' is connected.\n")
    run("enable")
    code, _, words = run("disconnect", "my shop")
    assert code == 1
    assert words.startswith("Msg 50016, ")
    assert "highwater disable -d 'my shop'" in words
    assert run("disable")[0] == 0
    assert run("disconnect", "my shop") == (0, "Database 'my shop' is disconnected.\n", "")
    assert "Msg 911, " in run("disconnect", "my shop")[2]


def test_what_a_source_that_is_gone_may_still_hold_is_said(run, source_dsn, control_dsn):
    run("connect", "shop", source_dsn)
    run("enable")
    control = ControlDatabase.open(control_dsn)
    control.sources.set_dsn("shop", "postgresql://nobody@localhost:1/none")
    control.close()
    assert run("disconnect", "shop")[0] == 1
    code, said, words = run("disconnect", "shop", "--force")
    assert (code, said) == (0, "Database 'shop' is disconnected.\n")
    assert "pg_drop_replication_slot" in words
    assert "DROP SCHEMA IF EXISTS cdc CASCADE;" in words
