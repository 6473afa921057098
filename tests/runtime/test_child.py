"""A child is started again when it ends, and ends when it must."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from threading import Event

import pytest

from engine.runtime.child import Child, EndedEarlyError, keep_running
from engine.runtime.processes import birth

WAITS = "import signal; print('up', flush=True); signal.pause()"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAITS}"
SECONDS = 120

MakeChild = Callable[[str], Child]


@pytest.fixture
def pids() -> Queue[int]:
    return Queue()


@pytest.fixture
def lines() -> Queue[str]:
    return Queue()


@pytest.fixture
def child(tmp_path: Path, pids: Queue[int], lines: Queue[str]) -> Iterator[MakeChild]:
    made: list[Child] = []

    def make(program: str) -> Child:
        command = [sys.executable, "-c", program]
        made.append(Child("clerk", command, os.environ, tmp_path / "clerk.log", lines.put, pids.put))
        return made[-1]

    yield make
    for each in made:
        each.stop(5)


def test_it_writes_to_its_log(child: MakeChild, tmp_path: Path) -> None:
    clerk = child("print('hello')")
    clerk.start()
    assert ended(clerk) == 0
    assert (tmp_path / "clerk.log").read_text() == "hello\n"
    assert clerk.last_words() == "hello"


def test_one_that_cannot_start_is_not_started_again(child: MakeChild, pids: Queue[int]) -> None:
    clerk = child("import sys; sys.exit('no ink')")
    clerk.start()
    assert ended(clerk) == 1
    assert clerk.last_words() == "no ink"
    assert pids.qsize() == 1


def test_one_that_was_killed_comes_back(child: MakeChild, pids: Queue[int], lines: Queue[str]) -> None:
    clerk = child(WAITS)
    clerk.start()
    first = pids.get(timeout=SECONDS)
    clerk.keep()
    os.kill(first, signal.SIGKILL)
    second = pids.get(timeout=SECONDS)
    assert second != first
    assert clerk.pid == second
    assert "SIGKILL" in lines.get(timeout=SECONDS)


def test_stopping_ends_it_for_good(child: MakeChild, pids: Queue[int]) -> None:
    clerk = child(WAITS)
    clerk.start()
    pid = pids.get(timeout=SECONDS)
    clerk.keep()
    clerk.stop(SECONDS)
    assert birth(pid) is None
    assert clerk.pid is None
    assert pids.empty()


def test_one_that_will_not_stop_is_killed(child: MakeChild, tmp_path: Path, lines: Queue[str]) -> None:
    clerk = child(STUBBORN)
    clerk.start()
    until(lambda: (tmp_path / "clerk.log").exists() and (tmp_path / "clerk.log").read_text() == "up\n")
    clerk.stop(0.1)
    assert clerk.exit_code == -signal.SIGKILL
    assert "killed" in lines.get(timeout=SECONDS)


def test_a_log_is_cut_while_its_process_writes(tmp_path: Path, lines: Queue[str], pids: Queue[int]) -> None:
    log, orders = tmp_path / "clerk.log", tmp_path / "orders"
    os.mkfifo(orders)
    program = f"for line in open({str(orders)!r}): print(line, end='', flush=True)"
    clerk = Child("clerk", [sys.executable, "-c", program], os.environ, log, lines.put, pids.put, log_bytes=8)
    clerk.start()
    with orders.open("w") as pen:

        def write(line: str, expected: str) -> None:
            print(line, file=pen, flush=True)
            until(lambda: log.read_text() == expected)

        write("1234567", "1234567\n")
        clerk.limit_log()
        write("more", "1234567\nmore\n")
        clerk.limit_log()
        assert log.with_suffix(".log.1").read_text() == "1234567\nmore\n"
        write("after", "after\n")
        write("and more", "after\nand more\n")
        clerk.limit_log()
        assert log.with_suffix(".log.1").read_text() == "after\nand more\n"
    assert ended(clerk) == 0
    clerk.stop(5)
    assert lines.empty()


def test_a_log_that_cannot_be_put_aside_is_cut_all_the_same(tmp_path: Path, lines: Queue[str]) -> None:
    log = tmp_path / "clerk.log"
    log.write_text("too long")
    log.with_suffix(".log.1").mkdir()
    Child("clerk", [], os.environ, log, lines.put, lambda _: None, log_bytes=1).limit_log()
    assert log.read_text() == ""
    assert "cut without a copy" in lines.get_nowait()


def test_pauses_grow_while_runs_are_short() -> None:
    stop = Event()
    runs: list[int] = []

    def run() -> None:
        runs.append(len(runs))
        if len(runs) == 3:
            stop.set()
        raise EndedEarlyError

    keep_running(run, stop)
    assert runs == [0, 1, 2]


def test_nothing_runs_once_stopped() -> None:
    stop = Event()
    stop.set()
    keep_running(lambda: pytest.fail("ran"), stop)


def ended(child: Child) -> int:
    """Waits for the process's own end; its exit code."""
    until(lambda: child.exit_code is not None)
    assert child.exit_code is not None
    return child.exit_code


def until(true: Callable[[], bool]) -> None:
    """Waits for a condition that another process brings about."""
    pause = Event()
    for _ in range(SECONDS * 100):
        if true():
            return
        pause.wait(0.01)
    pytest.fail("did not happen")
