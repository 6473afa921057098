"""pgbench against a server that is not ours: its tables, rebuilt from change rows, equal the source."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import psycopg
import pytest

from tests.debian_postgres import BINARIES, DebianPostgres, debian_postgres
from tests.integration.conftest import Source
from tests.integration.table_copy import TableCopy

TABLES = {
    "pgbench_accounts": "aid",
    "pgbench_branches": "bid",
    "pgbench_tellers": "tid",
    "pgbench_history": None,
}
SETTINGS = {"wal_level": "logical", "max_replication_slots": "4", "max_wal_senders": "4"}
SCALE, CLIENTS, TRANSACTIONS = 1, 4, 250

KEYS_AND_DELETES = """
\\set a random(1, 1000)
BEGIN;
DELETE FROM pgbench_accounts WHERE aid = :a;
INSERT INTO pgbench_accounts VALUES (:a, 1, :a, 'again') ON CONFLICT (aid) DO UPDATE SET filler = 'twice';
UPDATE pgbench_accounts SET aid = nextval('moved') WHERE aid = :a AND :a % 3 = 0;
UPDATE pgbench_history SET filler = 'seen' WHERE mtime = (SELECT min(mtime) FROM pgbench_history);
END;
"""


@pytest.fixture(scope="module")
def server() -> Iterator[DebianPostgres]:
    with debian_postgres(SETTINGS) as server:
        yield server


def pgbench(dsn: str, *arguments: str) -> None:
    done = subprocess.run(
        [str(BINARIES / "pgbench"), *arguments, dsn], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr


def contents(dsn: str, table: str) -> tuple[list[str], list[tuple[object, ...]]]:
    """Columns and rows, values as ``highwater changes --format json`` writes them."""
    with psycopg.connect(dsn) as connection:
        cursor = connection.execute(f"SELECT * FROM {table}".encode())
        assert cursor.description is not None
        rows = [
            tuple(value.isoformat() if hasattr(value, "isoformat") else value for value in row)
            for row in cursor
        ]
        return [column.name for column in cursor.description], rows


def test_every_table_is_rebuilt_from_its_changes_row_for_row(home, server, tmp_path):
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE bench")
    dsn = server.dsn("bench")
    pgbench(dsn, "-i", "-s", str(SCALE), "-q")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE moved START 1000000")
    home.must("connect", "bench", dsn)
    source = Source(home, "bench", dsn)
    for table in TABLES:
        source.enable(table)
    copies = {table: TableCopy(*contents(dsn, table)) for table in TABLES}

    script = tmp_path / "keys_and_deletes.sql"
    script.write_text(KEYS_AND_DELETES)
    pgbench(
        dsn,
        "-n",
        "-c",
        str(CLIENTS),
        "-j",
        "2",
        "-t",
        str(TRANSACTIONS),
        "-b",
        "tpcb-like@4",
        "-f",
        f"{script}@1",
    )
    source.sync()

    for table, key in TABLES.items():
        copy = copies[table]
        changes = source.changes(f"public_{table}", "--row-filter", "all update old")
        assert changes
        copy.apply(changes)
        now = contents(dsn, table)[1]
        assert copy.differences(now) == ([], [])
        if key is not None:
            place = copy.columns.index(key)
            assert len({row[place] for row in now}) == len(now) == copy.rows.total()
    history = source.changes("public_pgbench_history")
    inserted = [row for row in history if row["__$operation"] == 2]
    assert 0 < len(inserted) <= CLIENTS * TRANSACTIONS
    home.must("disable", "-d", "bench")


def test_pgbench_is_there():
    assert os.access(BINARIES / "pgbench", os.X_OK), "apt-get install postgresql-15 postgresql-contrib"
