"""Which alerts stand, and how a hook is told: by a real command, and by a real server."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event, Thread

import pytest

from engine.errors import AlertHookInvalid, AlertNotDelivered
from engine.model.alert import AlertHook, AlertKind
from engine.model.job import JobState
from engine.model.lsn import Lsn
from engine.monitoring.alert_delivery import deliver
from engine.monitoring.alerts import judge
from engine.procedures.alerts import checked
from engine.sources.base import SlotState
from tests.monitoring.test_diagnosis import HEALTHY, NOW

HOOK = AlertHook(lag_seconds=60, stall_seconds=60, slot_bytes=1000)
FAILURE, STALL, LAG, SLOT = AlertKind.FAILURE, AlertKind.STALL, AlertKind.LAG, AlertKind.SLOT


def silent_for(seconds: float, **changes: object):
    """The database, the log ahead of what was published so many seconds ago."""
    marks = replace(HEALTHY.watermarks, published_at=NOW - timedelta(seconds=seconds))
    return replace(HEALTHY, watermarks=marks, log_end=Lsn(b"\xff" * 10), **changes)


def standing(facts):
    return set(judge(facts, NOW, HOOK).standing)


def test_what_is_well_is_not_told():
    assert judge(HEALTHY, NOW, HOOK).standing == {}


def test_silence_is_lag_and_a_stall_where_the_log_goes_on():
    assert standing(silent_for(30)) == set()
    assert standing(silent_for(3600)) == {STALL, LAG}
    idle = silent_for(3600)
    assert standing(replace(idle, log_end=idle.watermarks.scanned)) == set()


def test_a_job_that_fails_is_a_failure_and_no_stall():
    job = replace(HEALTHY.capture_job, state=JobState.FAILED, message="Msg 50001: away.")
    assert standing(silent_for(3600, jobs=(job,))) == {FAILURE, LAG}


@pytest.mark.parametrize(
    ("retained", "status", "told"),
    [(1000, "reserved", False), (1001, "extended", True), (0, "lost", True), (0, "unreserved", True)],
)
def test_a_slot_is_told_over_its_threshold_and_when_it_is_lost(retained, status, told):
    slot = SlotState("s", Lsn.ZERO, Lsn.ZERO, retained, status, None, None)
    assert (SLOT in standing(replace(HEALTHY, slot=slot))) is told


def test_of_a_source_that_does_not_answer_nothing_is_known():
    judgement = judge(replace(HEALTHY, slot=None, log_end=None), NOW, HOOK)
    assert (judgement.standing, judgement.unknown) == ({}, {STALL, LAG, SLOT})


# Telling


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.server.got.append((self.headers["Content-Type"], json.loads(self.rfile.read(length))))
        self.server.may_answer.wait()
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_):
        """Not into the tests' output."""


@contextmanager
def webhook(status: int = 204, hangs: bool = False) -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    server.got, server.status, server.may_answer = [], status, Event()
    if not hangs:
        server.may_answer.set()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()


def url(server: HTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}/alerts"


def test_a_webhook_gets_json():
    with webhook() as server:
        assert deliver(AlertHook(webhook=url(server)), {"kind": "lag", "text": "zurück"}) == "HTTP 204"
    assert server.got == [("application/json", {"kind": "lag", "text": "zurück"})]


def test_a_webhook_that_refuses_hangs_or_is_away_is_said():
    with webhook(500) as server, pytest.raises(AlertNotDelivered, match="answered HTTP 500"):
        deliver(AlertHook(webhook=url(server)), {})
    with webhook(hangs=True) as server, pytest.raises(AlertNotDelivered, match=r"within 1 s|timed out"):
        deliver(AlertHook(webhook=url(server), timeout_seconds=1), {})
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        with pytest.raises(AlertNotDelivered):
            deliver(AlertHook(webhook=f"http://127.0.0.1:{port}/"), {})


def python(code: str) -> AlertHook:
    return checked(AlertHook(command=f'"{sys.executable}" -c "{code}"', timeout_seconds=60))


def test_a_command_gets_json_on_its_standard_input(tmp_path):
    file = tmp_path / "told.json"
    code = f"import shutil, sys; shutil.copyfileobj(sys.stdin, open('{file}', 'w'))"
    assert deliver(python(code), {"kind": "slot"}) == "exit code 0"
    assert json.loads(file.read_text()) == {"kind": "slot"}


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (python("import sys; print('no such room'); sys.exit(3)"), "ended with 3: no such room"),
        (replace(python("import time; time.sleep(600)"), timeout_seconds=1), "did not end within 1 s"),
        (AlertHook(command="/nowhere/hook"), "cannot be started"),
    ],
)
def test_a_command_that_fails_or_hangs_is_said(hook, words):
    with pytest.raises(AlertNotDelivered, match=words):
        deliver(hook, {"kind": "slot"})


@pytest.mark.parametrize(
    "hook",
    [
        AlertHook(command="a", webhook="http://b"),
        AlertHook(command="  "),
        AlertHook(command="a 'b"),
        AlertHook(webhook="ftp://b"),
        AlertHook(webhook="http://[b"),
        AlertHook(webhook="http://b/ c"),
        AlertHook(lag_seconds=0),
        AlertHook(slot_bytes=2**63),
        AlertHook(timeout_seconds=301),
    ],
)
def test_what_cannot_be_a_hook_is_refused(hook):
    with pytest.raises(AlertHookInvalid):
        checked(hook)
