"""Capture jobs with a script in the place of their scan, the documented examples as they are among them."""

from __future__ import annotations

import runpy
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from engine.control.leases import LeaseOf
from engine.errors import StepInvalid, SubsystemUnknown
from engine.model.job import JobState, JobStep, RunOutcome, Subsystem
from engine.procedures.job_rules import step_of
from tests.agent.conftest import SECONDS, job_of, until, until_state
from tests.capture.conftest import DATABASE

EXAMPLES = Path(__file__).parents[2] / "docs" / "custom_jobs"
HANG = "import sys, time\nprint('begun', flush=True)\nwhile True:\n    time.sleep(60)\n"


def scripted(workbench, subsystem, command):
    workbench.engine.update_job_step(DATABASE, subsystem, command)


def history(workbench):
    return workbench.engine.job_history(DATABASE, "capture")


def scripts_running():
    """Processes of job steps that this test process has started."""
    living = [each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE]
    return [each for each in living if "engine.agent.step_process" in each.cmdline()]


@pytest.mark.parametrize(
    ("subsystem", "name"), [("TSQL", "time_of_day.sql"), ("PYTHON", "rates.py")], ids=["T-SQL", "Python"]
)
def test_an_example_captures_until_its_job_is_stopped(tracked, new_agent, subsystem, name):
    command = (EXAMPLES / name).read_text()
    scripted(tracked, subsystem, command)
    tracked.sql("INSERT INTO t VALUES (1, 'a')")
    new_agent()
    job = until_state(tracked, JobState.RUNNING)
    assert job.running_step == job.step == JobStep(Subsystem(subsystem), command)
    until(lambda: tracked.control.watermarks.get(DATABASE).high is not None, "something is captured")
    tracked.engine.stop_job(DATABASE)
    assert [row["id"] for row in tracked.rows("public_t")] == [1]
    assert (job_of(tracked).state, job_of(tracked).running_step) == (JobState.STOPPED, None)
    assert scripts_running() == []
    [run] = history(tracked)
    assert (run.outcome, run.message) == (RunOutcome.STOPPED, "Stopped.")
    assert run.parameters["step"] == subsystem
    # Back to the scan: its own lease and place are free.
    scripted(tracked, None, None)
    tracked.engine.start_job(DATABASE)
    tracked.sql("INSERT INTO t VALUES (2, 'a')")
    tracked.engine.sync(DATABASE, SECONDS)
    assert len(tracked.rows("public_t")) == 2
    assert "step" not in history(tracked)[0].parameters


def test_the_job_ends_when_everything_before_midnight_is_captured(tracked, new_agent):
    scripted(tracked, "python", (EXAMPLES / "until_midnight.py").read_text())
    tracked.sql("INSERT INTO t VALUES (1, 'a')")
    new_agent()
    until(lambda: not job_of(tracked).wanted, "it has ended by itself")
    job = until_state(tracked, JobState.STOPPED)
    assert job.message == "The step has finished."
    assert len(tracked.rows("public_t")) == 1
    [run] = history(tracked)
    midnight = datetime.now(UTC).replace(hour=0, minute=0)
    assert run.outcome is RunOutcome.SUCCEEDED
    assert run.output == f"All transactions committed before {midnight:%Y-%m-%d %H:%M} UTC are captured."
    # Once a day by its schedule: here a time that has passed while nobody looked.
    tracked.engine.change_job(DATABASE, schedule="5 0 * * *")
    until(lambda: job_of(tracked).next_run is not None, "the agent has seen the schedule")
    tracked.control.jobs.expect(job_of(tracked), datetime.now(UTC) - timedelta(hours=1))
    tracked.control.notify("highwater_jobs", DATABASE)
    until(lambda: len(history(tracked)) == 2 and history(tracked)[0].end_time, "it has run again")
    assert job_of(tracked).next_run > datetime.now(UTC)
    assert not job_of(tracked).wanted


def test_midnight_lies_between_two_commits_and_no_more_than_needed_is_captured(tracked, new_agent):
    module = runpy.run_path(str(EXAMPLES / "until_midnight.py"))
    new_agent()
    until_state(tracked, JobState.RUNNING)
    tracked.engine.sync(DATABASE, SECONDS)
    tracked.engine.stop_job(DATABASE)
    for number in range(3):
        tracked.sql(f"INSERT INTO t VALUES ({number}, 'before')")
    [[midnight]] = tracked.sql("SELECT clock_timestamp()")
    for number in range(3, 6):
        tracked.sql(f"INSERT INTO t VALUES ({number}, 'after')")
    module["capture_until"](tracked.engine, DATABASE, midnight, 1, 1, lambda seconds: None)
    assert sorted(row["id"] for row in tracked.rows("public_t")) == [0, 1, 2, 3]
    # Nothing after midnight: the end of the log says that all is there.
    tracked.engine.scan(DATABASE)
    tomorrow = midnight + timedelta(days=1)
    module["capture_until"](tracked.engine, DATABASE, tomorrow)
    assert len(tracked.rows("public_t")) == 6


def test_the_rates_of_the_example_follow_the_backlog():
    rate_for = runpy.run_path(str(EXAMPLES / "rates.py"))["rate_for"]
    assert [rate_for(backlog).pause for backlog in (0, 16 * 1024**2, 10 * 1024**3)] == [10, 1, 0]


def test_a_script_that_fails_is_tried_again_and_the_agent_lives(tracked, new_agent):
    scripted(tracked, "PYTHON", "import os\nprint('about to fall', flush=True)\nos.abort()\n")
    new_agent()
    until(lambda: history(tracked) and history(tracked)[0].retries >= 1, "it was tried again")
    job = job_of(tracked)
    if job.state is JobState.FAILED:
        assert "ended with SIGABRT. Its last line: about to fall. Retrying: attempt " in job.message
    [run] = history(tracked)
    assert (run.outcome, run.output) == (RunOutcome.FAILED, "about to fall")
    assert run.message.startswith("Msg 50063, Level 16, State 1: ")
    tracked.engine.stop_job(DATABASE)
    assert job_of(tracked).state is JobState.STOPPED


def test_an_error_of_t_sql_fails_the_step_and_batches_after_it_do_not_run(tracked, new_agent):
    scripted(tracked, "TSQL", "EXEC sys.sp_cdc_scan @maxtrans = 0\nGO\nPRINT 'not reached'\n")
    new_agent()
    until(lambda: history(tracked) and history(tracked)[0].outcome is RunOutcome.FAILED, "it has failed")
    tracked.engine.stop_job(DATABASE)
    [run] = history(tracked)
    assert run.outcome is RunOutcome.FAILED
    assert "22991" in run.output
    assert "not reached" not in run.output


def test_a_script_that_does_not_listen_is_killed_with_what_it_started(tracked, new_agent):
    scripted(
        tracked,
        "PYTHON",
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n",
    )
    agent = new_agent()
    until_state(tracked, JobState.RUNNING)
    until(lambda: history(tracked)[0].output, "what it printed is told while it runs")
    child = int(history(tracked)[0].output)
    agent.stop()
    until(lambda: not psutil.pid_exists(child), "what it started is gone too")
    assert scripts_running() == []
    assert job_of(tracked).wanted


def test_one_of_two_agents_runs_the_script_and_the_other_takes_over(tracked, new_agent):
    scripted(tracked, "PYTHON", HANG)
    first = new_agent("first")
    until_state(tracked, JobState.RUNNING)
    new_agent("second")
    holders = tracked.control.leases.holders(DATABASE)
    assert holders[LeaseOf.STEP] == "first"
    assert len(scripts_running()) == 1
    first.stop()
    until(lambda: tracked.control.leases.holders(DATABASE).get(LeaseOf.STEP) == "second", "the other has it")
    until_state(tracked, JobState.RUNNING)
    until(lambda: len(scripts_running()) == 1, "one script runs")


def test_a_script_does_not_outlive_an_agent_that_was_killed():
    """The agent's end is the end of the pipe that it holds."""
    script = subprocess.Popen(
        [sys.executable, "-m", "engine.agent.step_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    script.stdin.write(b'{"subsystem": "PYTHON", "database": "db", "command": "%s"}\n' % _as_json(HANG))
    script.stdin.flush()
    assert script.stdout.readline() == b"begun\n"
    script.stdin.close()
    assert script.wait(SECONDS) == -signal.SIGKILL
    script.stdout.close()


def _as_json(text: str) -> bytes:
    return text.replace("\n", "\\n").encode()


@pytest.mark.parametrize(
    ("subsystem", "command", "error"),
    [
        ("CmdExec", "ls", SubsystemUnknown),
        (None, "ls", SubsystemUnknown),
        ("PYTHON", "def (", StepInvalid),
        ("PYTHON", "a = '\0'", StepInvalid),
        ("TSQL", "  \n", StepInvalid),
    ],
)
def test_what_cannot_be_a_step_is_refused(subsystem, command, error):
    with pytest.raises(error):
        step_of(subsystem, command)


def test_without_a_command_the_step_is_the_scan():
    assert step_of(None, None) is None
    assert step_of(" tsql ", "SELECT 1") == JobStep(Subsystem.TSQL, "SELECT 1")
