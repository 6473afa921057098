"""The command line as others' scripts call it."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
import typer.main
from typer.testing import CliRunner

from engine.cli.capture_commands import as_dict, as_text
from engine.cli.cleanup_commands import as_dict as cleanup_as_dict
from engine.cli.cleanup_commands import as_text as cleanup_as_text
from engine.cli.client_commands import as_dict as client_as_dict
from engine.cli.client_commands import as_text as client_as_text
from engine.cli.client_commands import parse_length
from engine.cli.main import application
from engine.errors import ExpiryInvalid
from engine.model.client import Client, ClientForecast, ClientLag
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
from engine.model.lsn import Lsn

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


def a_lag(**differs: object) -> ClientLag:
    client = Client(
        "shop", "dbo_t", "etl", Lsn.at(5), EIGHT, EIGHT, timedelta(days=7), Lsn.at(1), EIGHT, **differs
    )
    return ClientLag(client, 1234, 2000, 93_784.5, EIGHT, ClientForecast(EIGHT, client.expires_at))


def test_a_client_says_how_far_it_is_behind_and_what_becomes_of_it():
    assert client_as_text(a_lag()).splitlines() == [
        f"etl of shop.dbo_t: at {Lsn.at(5)}, 2,000 rows and 1 d 2 h behind (1,234 bytes of log)",
        "  heard of 2026-01-05 08:00:00 UTC, expires after 7 d of silence: 2026-01-12 08:00:00 UTC",
        "  at its pace cleanup waits for it from 2026-01-05 08:00:00 UTC",
    ]
    held = a_lag(held_lsn=Lsn.at(9), held_since=EIGHT)
    assert client_as_text(held).splitlines()[2] == "  cleanup has waited for it since 2026-01-05 08:00:00 UTC"
    assert cleanup_as_text(cleanup_job(), [held.client]).splitlines()[-1] == (
        f"  waits for client 'etl' of dbo_t, at {Lsn.at(5)}, since 2026-01-05 08:00:00 UTC"
    )
    facts = client_as_dict(held)
    assert (facts["lag_rows"], facts["lag_bytes"], facts["lag_seconds"]) == (2000, 1234, 93_784.5)
    assert (facts["holds_cleanup"], facts["expires_after"]) == (True, 604_800)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90m", timedelta(minutes=90)),
        ("36H", timedelta(hours=36)),
        (" 7d ", timedelta(days=7)),
        ("never", None),
    ],
)
def test_a_limit_is_a_length_of_time(text, length):
    assert parse_length(text) == length


@pytest.mark.parametrize("text", ["", "0d", "7", "d", "-1h", "1w", "1.5h", "soon", "9999999d"])
def test_what_is_no_length_of_time_is_refused(text):
    with pytest.raises(ExpiryInvalid):
        parse_length(text)


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
