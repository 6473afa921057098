"""``highwater start`` and its siblings, from the outside, on a home of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from engine.runtime.child import LOG_BYTES
from engine.runtime.home import Home
from engine.runtime.ports import free_port, page_answers
from engine.runtime.processes import AGENT_AWAY_SINCE

SECONDS = 300


class Highwater:
    """The command on one home."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "engine", *arguments, "--home", str(self.folder)]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS * 2)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("status", "--json").stdout)
        return found

    def pid(self, process: str) -> int | None:
        found: int | None = self.status()["processes"].get(process, {}).get("pid")
        return found

    def wait_for_another(self, process: str, old: int) -> int:
        """Waits until ``process`` runs again; its new pid."""
        until(lambda: self.pid(process) not in (None, old))
        found = self.pid(process)
        assert found is not None
        return found


def until(true: Callable[[], bool]) -> None:
    pause, end = Event(), time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end, "did not happen"
        pause.wait(0.2)


@pytest.fixture(scope="module")
def highwater(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Highwater]:
    """A home that was started; the last test of this module stops it."""
    home = Highwater(tmp_path_factory.mktemp("start") / "home", free_port())
    done = home("start", "--detach", "--port", str(home.port))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Open http://localhost:{home.port}" in done.stdout
    yield home
    home("stop")


def test_the_page_answers_when_the_url_is_printed(highwater: Highwater) -> None:
    assert page_answers(highwater.port)


def test_status_names_every_process(highwater: Highwater) -> None:
    status = highwater.status()
    assert set(status["processes"]) == {"supervisor", "postgres", "agent", "dashboard"}
    assert status["agent"]["pid"] == status["processes"]["agent"]["pid"]


def test_the_demo_is_registered_and_not_enabled(highwater: Highwater) -> None:
    (demo,) = highwater.status()["databases"]
    assert (demo["name"], demo["is_cdc_enabled"]) == ("demo", False)


@pytest.mark.parametrize("detach", [[], ["--detach"]])
def test_the_same_home_is_not_started_twice(highwater: Highwater, detach: list[str]) -> None:
    said = (highwater.folder / "log" / "supervisor.log").read_text()
    done = highwater("start", *detach)
    assert (done.returncode, done.stdout) == (1, "")
    assert "already runs" in done.stderr
    assert "highwater stop" in done.stderr
    assert (highwater.folder / "log" / "supervisor.log").read_text() == said


@pytest.mark.parametrize("detach", [[], ["--detach"]])
def test_a_port_in_use_is_said_with_another_to_choose(
    highwater: Highwater, tmp_path: Path, detach: list[str]
) -> None:
    folder = tmp_path / "home"
    done = Highwater(folder, highwater.port)("start", "--port", str(highwater.port), *detach)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"Port {highwater.port}" in done.stderr
    assert f"--port {highwater.port + 1}" in done.stderr
    assert "Traceback" not in done.stderr
    assert not folder.exists()


def test_what_a_detached_start_fails_of_is_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "highwater.toml").write_text('driver_memory = "1k"\n')
    done = Highwater(tmp_path / "home", 0)("start", "--detach", "--no-dashboard", "--no-demo")
    assert done.returncode != 0
    assert "The agent does not start" in done.stderr
    assert "The agent does not start" not in done.stdout


def test_a_log_that_becomes_too_long_is_put_aside(highwater: Highwater) -> None:
    log = highwater.folder / "log" / "agent.log"
    os.truncate(log, LOG_BYTES + 1)
    until(lambda: log.with_suffix(".log.1").exists() and log.stat().st_size <= LOG_BYTES)


def test_the_doctor_finds_nothing(highwater: Highwater) -> None:
    done = highwater("doctor")
    assert done.returncode == 0, done.stdout
    assert "Source 'demo'" in done.stdout


def test_a_killed_agent_comes_back_by_itself(highwater: Highwater) -> None:
    old = highwater.pid("agent")
    assert old is not None
    home = Home(highwater.folder)
    os.kill(old, signal.SIGKILL)
    until(lambda: AGENT_AWAY_SINCE in home.processes()["supervisor"].facts)  # until another is there
    assert highwater("status").returncode in (0, 1, 2)
    highwater.wait_for_another("agent", old)
    until(lambda: AGENT_AWAY_SINCE not in home.processes()["supervisor"].facts)


def test_a_killed_postgresql_comes_back_by_itself(highwater: Highwater) -> None:
    old = highwater.pid("postgres")
    assert old is not None
    os.kill(old, signal.SIGKILL)
    highwater.wait_for_another("postgres", old)
    until(lambda: [database["name"] for database in highwater.status()["databases"]] == ["demo"])


def test_sync_waits_while_postgresql_is_started_again(highwater: Highwater) -> None:
    assert highwater("enable", "-d", "demo", "HumanResources.Department").returncode == 0
    old = highwater.pid("postgres")
    assert old is not None
    os.kill(old, signal.SIGKILL)
    done = highwater("sync", "-d", "demo", "--timeout", str(SECONDS))
    assert (done.returncode, done.stderr) == (0, "")
    assert highwater("disable", "-d", "demo").returncode == 0


def test_stopping_leaves_no_process_and_all_data(highwater: Highwater) -> None:
    assert highwater("stop").returncode == 0
    status = highwater("status", "--json")
    assert status.returncode == 2
    assert json.loads(status.stdout)["processes"] == {}
    assert not page_answers(highwater.port)
    assert "Nothing runs" in highwater("stop").stdout


def test_a_second_start_finds_the_data_and_ctrl_c_ends_it(highwater: Highwater, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "engine", "start", "--no-dashboard", "--home", str(highwater.folder)]
    with (tmp_path / "said").open("w+") as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        until(lambda: process.poll() is not None or "Ready" in Path(said.name).read_text())
        assert [database["name"] for database in highwater.status()["databases"]] == ["demo"]
        assert highwater.status()["processes"]["supervisor"]["port"] is None
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0
        assert "Stopped" in Path(said.name).read_text()
    assert highwater.status()["processes"] == {}
