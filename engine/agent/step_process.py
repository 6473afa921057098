"""``python -m engine.agent.step_process``: the process in which the step of a capture job runs.

The agent writes one line of JSON, ``{"subsystem", "database", "command"}``, to its standard input and keeps
that open: where it ends, the agent has, and the script and all that it started must not outlive it.
"""

from __future__ import annotations

import json
import linecache
import os
import signal
import sys
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import BinaryIO

from engine.model.job import Subsystem

SCRIPT = "<step>"
"""What tracebacks call the script."""


def main() -> int:
    """Runs the script that it is told of; the exit code."""
    agent = os.fdopen(os.dup(0), "rb")
    told = json.loads(agent.readline())
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    Thread(target=_end_with, args=(agent,), daemon=True).start()
    if told["subsystem"] == Subsystem.PYTHON:
        run_python(told["command"])
        return 0
    return run_tsql(told["database"], told["command"])


def _end_with(agent: BinaryIO) -> None:
    """Kills this process and what it started when the agent is gone."""
    agent.read()
    os.killpg(0, signal.SIGKILL)


def run_python(command: str) -> None:
    """Runs the text as a program; what ends it, ends the process as it would end Python's own."""
    linecache.cache[SCRIPT] = (len(command), None, command.splitlines(True), SCRIPT)
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.argv = [SCRIPT]
    program = compile(command, SCRIPT, "exec")
    # An admin's own program, in a process apart: to run it is what this is for.
    exec(program, module.__dict__)  # nosec B102


def run_tsql(database: str, command: str) -> int:
    """Runs batches until one fails, as a job step of T-SQL does; 1 where one has."""
    import structlog

    from engine.engine import Engine
    from engine.errors import CdcError
    from engine.settings import Settings
    from engine.tsql.batches import batches
    from engine.tsql.interpreter import session
    from engine.tsql.output import TableSink

    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    engine = Engine.open(Settings())
    try:
        with session(engine, database, TableSink(_say, _say)) as interpreter:
            for batch in batches(command):
                interpreter.run(batch)
                if interpreter.failed:
                    return 1
    except CdcError as error:
        _say(f"{error.line()}\n")
        return 1
    finally:
        engine.close()
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
