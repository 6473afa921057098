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
from engine.cli.cleanup_commands import as_dict as cleanup_as_dict
from engine.cli.cleanup_commands import as_text as cleanup_as_text
from engine.cli.main import application
from engine.model.job import (
    CaptureParameters,
    CleanupJob,
    CleanupParameters,
    Job,
    JobRun,
    JobState,
    JobType,
    RunOutcome,
)

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


EIGHT = datetime(2026, 1, 5, 8, tzinfo=UTC)


def cleanup_job(schedule: str | None = "0 2 * * *", last_run: JobRun | None = None) -> CleanupJob:
    return Job(
        UUID(int=2),
        "shop",
        JobType.CLEANUP,
        CleanupParameters(),
        None,
        False,
        JobState.STOPPED,
        EIGHT,
        "It has not run yet.",
        schedule,
        None if schedule is None else EIGHT.replace(day=6, hour=2),
        last_run,
    )


def test_a_cleanup_job_says_when_it_runs_next_and_how_it_went():
    run = JobRun(JobType.CLEANUP, EIGHT, EIGHT, RunOutcome.SUCCEEDED, "Deleted 12 rows below 0x07.", 12)
    assert cleanup_as_text(cleanup_job(last_run=run)).splitlines() == [
        "cdc.shop_cleanup: stopped since 2026-01-05 08:00:00 UTC; retention 4320, threshold 5000",
        "  schedule 0 2 * * *, next run 2026-01-06 02:00:00 UTC",
        "  last run 2026-01-05 08:00:00 UTC succeeded: Deleted 12 rows below 0x07.",
    ]
    assert cleanup_as_text(cleanup_job(schedule=None)).splitlines()[1:] == [
        "  no schedule: it runs when it is started"
    ]


def test_a_cleanup_job_for_scripts():
    run = JobRun(JobType.CLEANUP, EIGHT, None, RunOutcome.RUNNING, "Running.", 7)
    facts = cleanup_as_dict(cleanup_job(last_run=run))
    assert facts["configured"] == {"retention": 4320, "threshold": 5000}
    assert (facts["schedule"], facts["next_run"]) == ("0 2 * * *", "2026-01-06T02:00:00+00:00")
    assert facts["last_run"] == {
        "start_time": "2026-01-05T08:00:00+00:00",
        "end_time": None,
        "outcome": "running",
        "message": "Running.",
        "deleted_rows": 7,
    }


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
        "step": None,
        "running_step": None,
        "schedule": None,
        "next_run": None,
    }
