"""Connections to sources between two looks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import psycopg
import pytest

from engine.errors import SourceUnreachable
from engine.model.source_database import SourceDatabase
from engine.monitoring.kept_logs import KeptLogs
from engine.sources.base import LogSource
from engine.sources.registry import Sources

SERVING = (
    "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'highwater%'"
)


def end(log: LogSource) -> object:
    return log.log_end()


@pytest.fixture
def hr(source_dsn: str) -> SourceDatabase:
    return SourceDatabase(1, "hr", "postgresql", source_dsn, True, datetime.now(UTC))


@pytest.fixture
def logs() -> Iterator[KeptLogs]:
    kept = KeptLogs(Sources(lambda name: None), rest=60.0)
    yield kept
    kept.close()


def test_two_looks_share_a_connection_and_one_that_was_lost_is_made_anew(
    logs: KeptLogs, hr: SourceDatabase
) -> None:
    with psycopg.connect(hr.dsn, autocommit=True) as server:
        logs.ask(hr, end)
        logs.ask(hr, end)
        [before] = server.execute(SERVING).fetchall()
        logs.ask(hr, end)
        [after] = server.execute(SERVING).fetchall()
    assert before[0] != after[0]


def test_a_source_that_does_not_answer_says_so_and_nothing_is_kept_of_it(
    logs: KeptLogs, hr: SourceDatabase
) -> None:
    logs.ask(hr, end)
    away = replace(hr, dsn="postgresql://nobody@127.0.0.1:1/x")
    with pytest.raises(SourceUnreachable):
        logs.ask(away, end)
    assert not logs._resting
