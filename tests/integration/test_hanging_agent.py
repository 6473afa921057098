"""An agent that is suspended: it looks alive, and the status says that it is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

SECONDS = 300


def status_of(home, name):
    status = json.loads(home.call("status", "--json").stdout)
    return status, next(each for each in status["databases"] if each["name"] == name)


def test_an_agent_that_hangs_is_stalled_and_the_fix_brings_another(home, source):
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    source.enable("t")
    source.sync()
    status, database = status_of(home, source.name)
    assert database["capture"]["state"] in ("quiet", "capturing")
    pid = status["agent"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    end = time.monotonic() + SECONDS
    try:
        while database["capture"]["state"] != "stalled":
            assert time.monotonic() < end, database["capture"]
            status, database = status_of(home, source.name)
        capture = database["capture"]
        assert (capture["fix"], capture["why"]) == (
            f"kill -KILL {pid}",
            "The agent hangs: it holds its connections, but does not renew its lease.",
        )
        assert capture["since"]
        assert capture["fix"] in home.call("status").stdout
    finally:
        subprocess.run(["sh", "-c", f"kill -KILL {pid}"], check=True)
    source.sql("INSERT INTO t VALUES (1)")
    while home.call("sync", "-d", source.name, "--timeout", "60").returncode:
        assert time.monotonic() < end
    total, *_ = home.must("sessions", "-d", source.name, "--format", "json").splitlines()
    assert json.loads(total)["tran_count"] == 1
