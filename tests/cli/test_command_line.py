"""The command line as others' scripts call it."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import typer.main
from typer.testing import CliRunner

from engine.cli.capture_commands import as_dict, as_text
from engine.cli.main import application
from engine.model.job import CaptureParameters, Job, JobState, JobType

EXPECTED = Path(__file__).parent / "expected"


def usages() -> str:
    """Every command with its arguments and options, one a line."""
    return "".join(f"{line}\n" for line in _usages(typer.main.get_command(application()), "highwater"))


def _usages(command, name):
    if hasattr(command, "commands"):
        for each in command.commands.values():
            yield from _usages(each, f"{name} {each.name}")
    else:
        yield " ".join([name, *map(_usage, command.params)])


def _usage(parameter):
    if parameter.param_type_name == "argument":
        return parameter.name.upper() if parameter.required else f"[{parameter.name.upper()}]"
    return f"[{'|'.join([*parameter.opts, *parameter.secondary_opts])}]"


def test_commands_and_options_are_those_that_scripts_know():
    assert usages() == (EXPECTED / "usages.txt").read_text()


def test_help_does_not_wait_for_spark_or_the_database():
    code = (
        "import sys; from engine.cli.main import application; application();"
        "print({'pyspark', 'sqlalchemy', 'psycopg', 'streamlit'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_without_a_started_home_every_command_says_how_to_start(tmp_path):
    for command in (["dsn"], ["enable", "t"], ["sync"], ["changes", "x"], ["capture", "start"], ["demo"]):
        result = CliRunner().invoke(application(), [*command, "--home", str(tmp_path / "home")])
        assert result.exit_code == 1
        assert result.stdout == ""
        assert result.stderr.startswith("Msg 50011, Level 16, State 1: ")
        assert "highwater start" in result.stderr


def test_a_setting_that_is_wrong_is_named(tmp_path):
    (tmp_path / "highwater.toml").write_text("port = 99999\n")
    result = CliRunner().invoke(application(), ["dsn", "--home", str(tmp_path)])
    assert result.exit_code == 1
    assert result.stderr.startswith("Setting 'port': ")


def job(state: JobState, message: str, running: CaptureParameters | None) -> Job:
    return Job(
        UUID(int=1),
        "shop",
        JobType.CAPTURE,
        CaptureParameters(),
        running,
        True,
        state,
        datetime(2026, 1, 5, 8, tzinfo=UTC),
        message,
    )


def test_a_running_job_is_one_line():
    assert as_text(job(JobState.RUNNING, "Running.", CaptureParameters())) == (
        "cdc.shop_capture: running since 2026-01-05 08:00:00 UTC;"
        " maxtrans 500, maxscans 10, continuous 1, pollinginterval 5"
    )


def test_a_job_says_why_it_failed_and_what_it_still_runs_with():
    text = as_text(job(JobState.FAILED, "Msg 50001, …", CaptureParameters(maxtrans=7)))
    assert text.splitlines()[1:] == [
        "  Msg 50001, …",
        "  still runs with maxtrans 7, maxscans 10, continuous 1, pollinginterval 5: stop and start it",
    ]


def test_a_job_for_scripts():
    parameters = {"maxtrans": 500, "maxscans": 10, "continuous": 1, "pollinginterval": 5}
    assert as_dict(job(JobState.RUNNING, "Running.", CaptureParameters())) == {
        "database": "shop",
        "job": "cdc.shop_capture",
        "job_type": "capture",
        "state": "running",
        "since": "2026-01-05T08:00:00+00:00",
        "wanted": True,
        "message": "Running.",
        "configured": parameters,
        "running": parameters,
    }
