"""Two agents of two homes on one control database: one is frozen and wakes again, the other is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from engine.model.job import JobType, RunOutcome
from engine.runtime.embedded_postgres import CONTROL_DATABASE
from engine.runtime.home import Home
from tests.faults.agent_home import AGENT_SECONDS, DATABASE
from tests.faults.write_load import SCHEMA, TABLES, WriteLoad

pytestmark = pytest.mark.faults
TAKEOVER_SECONDS = 15


class RemoteAgent:
    """An agent as on a machine of its own: another home, the control database and the lake elsewhere."""

    def __init__(self, folder: Path, control_dsn: str, lake_root: str) -> None:
        self.home = Home(folder)
        self._log = folder.with_suffix(".log").open("wb")
        settings = {"CONTROL_DSN": control_dsn, "LAKE_ROOT": lake_root, "MASTER": "local[2]"}
        environment = {f"HIGHWATER_{name}": value for name, value in settings.items()}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "engine.agent", "--home", str(folder)],
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, **environment, "HIGHWATER_DRIVER_MEMORY": "1g"},
        )

    @property
    def processes(self) -> list[psutil.Process]:
        """The agent and its JVM."""
        agent = psutil.Process(self.process.pid)
        return [agent, *agent.children(recursive=True)]

    def is_ready(self) -> bool:
        assert self.process.poll() is None
        return "agent" in self.home.processes()

    def signal(self, number: signal.Signals) -> None:
        for each in self.processes:
            with suppress(psutil.NoSuchProcess):
                each.send_signal(number)

    def close(self) -> None:
        if self.process.poll() is None:
            for each in self.processes:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
        self.process.wait()
        self._log.close()


def test_the_other_agent_takes_over_and_the_one_that_slept_publishes_nothing(new_home, tmp_path):
    home = new_home()
    control_dsn, lake_root = home.server.dsn(CONTROL_DATABASE), str(home._home.lake)
    with ExitStack() as stack:

        def start(name):
            agent = RemoteAgent(tmp_path / name, control_dsn, lake_root)
            stack.callback(agent.close)
            return agent

        agents = {name: start(name) for name in ("first", "second")}
        home.until(lambda: all(agent.is_ready() for agent in agents.values()), "both agents are ready")
        replay, load = home.prepare(SCHEMA, TABLES), WriteLoad(home.dsn, 1)
        load.start()
        stack.callback(load.stop)
        home.until(lambda: home.high() > "", "something is published")
        frozen, other = _roles(home, agents)
        _takes_over(home, agents[frozen], signal.SIGSTOP, other)
        home.check(replay, TABLES)
        agents[frozen].signal(signal.SIGCONT)
        home.engine._control.jobs.want(DATABASE, JobType.CLEANUP, True)
        home.until(lambda: _cleanups(home) == [RunOutcome.SUCCEEDED], "the new holder cleans up too")
        home.check(replay, TABLES)
        _takes_over(home, agents[other], signal.SIGKILL, frozen)
        load.stop()
        home.engine.sync(DATABASE, AGENT_SECONDS)
        assert home.check(replay, TABLES) > 0
        home.check_mapping()
        outcomes = [run.outcome for run in home.engine.job_history(DATABASE, "capture")]
        assert outcomes.count(RunOutcome.INTERRUPTED) == 2


def _takes_over(home, agent, stop, other):
    """The agent is killed or frozen: within a quarter of a minute the other has the lease, and publishes."""
    agent.signal(stop)
    begun, before = time.monotonic(), home.high()
    home.until(lambda: _holder(home) == other, "the other has the lease")
    took = time.monotonic() - begun
    home.until(lambda: home.high() > before, "the other publishes")
    print(f"takeover after {stop.name}: {took:.1f} s, published after {time.monotonic() - begun:.1f} s")
    assert took < TAKEOVER_SECONDS


def _holder(home):
    [holder] = [lease.holder for lease in home.engine._control.leases.list() if lease.current] or [""]
    return holder.rpartition("/")[2]


def _roles(home, agents):
    """Who captures, and who waits."""
    holder = _holder(home)
    return holder, next(name for name in agents if name != holder)


def _cleanups(home):
    return [run.outcome for run in home.engine.job_history(DATABASE, "cleanup")]
