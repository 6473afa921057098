"""SIGKILL of a whole PostgreSQL server."""

from __future__ import annotations

import psutil

from engine.runtime.embedded_postgres import EmbeddedPostgres

SECONDS = 600


def kill_server(server: EmbeddedPostgres) -> None:
    """The postmaster and every backend, at once; returns when they are gone."""
    assert server.pid is not None
    postmaster = psutil.Process(server.pid)
    processes = [postmaster, *postmaster.children(recursive=True)]
    for process in processes:
        process.kill()
    psutil.wait_procs(processes, SECONDS)
