"""An agent on a thread of the test process, around the workbench of the capture tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

import pytest

from engine.agent.agent import Agent
from engine.capture.crash_points import CrashPoints
from engine.lake.publisher import Publisher
from engine.model.job import Job, JobState
from engine.settings import Settings
from tests.capture.conftest import DATABASE, Workbench, new_workbench, workbench

__all__ = ["new_workbench", "workbench"]

SECONDS = 300


class RunningAgent:
    """Runs until `stop`."""

    def __init__(self, workbench: Workbench, home: Path, holder: str = "agent") -> None:
        self._stop = Event()
        self._agent = Agent(
            workbench.control,
            workbench.sources,
            Publisher(workbench.spark, fsync=False),
            workbench.lake,
            Settings(
                home=home,
                lease_seconds=10,
                control_dsn=workbench.control._connections._dsn,
                lake_root=workbench.lake.root,
            ),
            holder,
            lambda: datetime.now(UTC),
            CrashPoints(),
        )
        self._thread = Thread(target=self._agent.run, args=(self._stop,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


def job_of(workbench: Workbench) -> Job:
    job = workbench.control.jobs.get(DATABASE)
    assert job is not None
    return job


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, f"not in time: {what}"
        time.sleep(0.02)


def until_state(workbench: Workbench, state: JobState) -> Job:
    until(lambda: job_of(workbench).state is state, f"{state}, not {job_of(workbench)}")
    return job_of(workbench)


@pytest.fixture
def new_agent(workbench: Workbench, tmp_path: Path) -> Iterator[Callable[..., RunningAgent]]:
    made: list[RunningAgent] = []

    def make(holder: str = "agent") -> RunningAgent:
        made.append(RunningAgent(workbench, tmp_path / "agent", holder))
        return made[-1]

    yield make
    for agent in made:
        agent.stop()


@pytest.fixture
def tracked(workbench: Workbench) -> Workbench:
    """A tracked table ``t``; its job is wanted, no agent runs yet."""
    workbench.sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    workbench.enable("t")
    return workbench
