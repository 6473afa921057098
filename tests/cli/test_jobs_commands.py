"""highwater jobs: what a run says of itself, and what is no step."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from engine.cli.jobs_commands import run_as_dict, run_as_text
from engine.cli.main import application
from engine.model.job import JobRun, JobType, RunOutcome

EIGHT = datetime(2026, 5, 1, 8, tzinfo=UTC)
FAILED = JobRun(
    JobType.CAPTURE,
    EIGHT,
    EIGHT,
    RunOutcome.FAILED,
    "Msg 50001: away.",
    0,
    3,
    {"maxtrans": 500, "continuous": True, "step": "PYTHON"},
    "one\ntwo",
)


def test_a_run_is_told_with_its_parameters_and_what_its_step_printed():
    assert run_as_text(FAILED).splitlines() == [
        "capture 2026-05-01 08:00:00 UTC to 2026-05-01 08:00:00 UTC: failed, 3 retries; "
        "maxtrans 500, continuous 1, step PYTHON",
        "  Msg 50001: away.",
        "  | one",
        "  | two",
    ]
    assert run_as_dict(FAILED)["parameters"] == {"maxtrans": 500, "continuous": 1, "step": "PYTHON"}


@pytest.mark.parametrize("name", ["step.txt", "missing.sql", "latin.py"])
def test_a_file_that_is_no_script_is_refused_before_anything_is_asked(tmp_path, name):
    (tmp_path / "step.txt").write_text("SELECT 1")
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")
    done = CliRunner().invoke(application(), ["jobs", "step", str(tmp_path / name)])
    assert done.exit_code == 2
    assert name in re.sub(r"[\s│]", "", done.output)  # its box breaks a long path anywhere
