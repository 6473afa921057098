"""Telling an alert: JSON to a command's standard input, or by POST to a URL; within its time."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread

import urllib3

from engine.errors import AlertNotDelivered
from engine.model.alert import AlertHook

_SAID = 500
"""Characters kept of what a command that failed printed."""
_OK = range(200, 300)


def deliver(hook: AlertHook, payload: Mapping[str, object]) -> str:
    """Tells the hook; how it took it, ``exit code 0`` or ``HTTP 204``. Raises AlertNotDelivered."""
    body = json.dumps(payload, ensure_ascii=False).encode()
    if hook.command is not None:
        return _run(hook.command, body, hook.timeout_seconds)
    if hook.webhook is not None:
        return _within(hook.webhook, body, hook.timeout_seconds)
    return "no hook is set"


def _run(command: str, body: bytes, seconds: int) -> str:
    try:
        process = subprocess.Popen(
            shlex.split(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise AlertNotDelivered(f"the command cannot be started: {error}") from error
    try:
        output, _ = process.communicate(body, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise AlertNotDelivered(f"the command did not end within {seconds} s") from error
    finally:
        _kill(process)
    if process.returncode:
        said = " ".join(output.decode(errors="replace").replace("\0", " ").split())[-_SAID:]
        raise AlertNotDelivered(f"the command ended with {process.returncode}: {said}")
    return "exit code 0"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Ends the command with what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


def _within(url: str, body: bytes, seconds: int) -> str:
    """Posts in a thread: a server that answers byte by byte is not waited for longer either."""
    answers: Queue[int | Exception] = Queue()

    def post() -> None:
        try:
            answers.put(_post(url, body, seconds))
        except (urllib3.exceptions.HTTPError, OSError) as error:
            answers.put(error)

    Thread(target=post, name="alert webhook", daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except Empty as error:
        raise AlertNotDelivered(f"{url} did not answer within {seconds} s") from error
    if isinstance(answer, Exception):
        raise AlertNotDelivered(f"{url}: {' '.join(str(answer).split())}") from answer
    if answer not in _OK:
        raise AlertNotDelivered(f"{url} answered HTTP {answer}")
    return f"HTTP {answer}"


def _post(url: str, body: bytes, seconds: int) -> int:
    with urllib3.PoolManager() as pool:
        response = pool.request(
            "POST",
            url,
            body=body,
            headers={"Content-Type": "application/json"},
            timeout=urllib3.Timeout(total=seconds),
            retries=False,
            redirect=False,
            preload_content=False,
        )
        response.close()
        return response.status
