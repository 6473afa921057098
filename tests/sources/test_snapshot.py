"""A table read in a snapshot: its values are those of the log, its transactions an exact set."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from engine.errors import RowsNotTold
from engine.sources.postgres import snapshot as snapshots
from engine.sources.postgres.snapshot import unseen_transactions
from tests.sources.conftest import Source
from tests.sources.test_values import images_by_operation
from tests.sources.type_samples import COLUMNS, comparable, create_table, insert_samples


def read(source: Source, instance: Any) -> list[dict[str, Any]]:
    """The rows of a snapshot by the names of the captured columns."""
    with source.admin.snapshot(instance) as snapshot:
        batches = list(snapshot.rows())
    return [
        {instance.column_names[int(place)]: value for place, value in row.items()}
        for batch in batches
        for row in batch.to_pylist()
    ]


def xid(number: int) -> bytes:
    return number.to_bytes(4, "big")


def test_what_runs_and_what_comes_later_is_not_seen() -> None:
    unseen = unseen_transactions("100:105:101,103")
    seen = [number for number in range(90, 110) if xid(number) not in unseen]
    assert seen == [*range(90, 101), 102, 104]
    assert xid(2**32 - 5) not in unseen, "of long ago"


def test_numbers_of_transactions_begin_anew_after_32_bits() -> None:
    last = 5 * 2**32 - 2
    unseen = unseen_transactions(f"{last - 3}:{last}:{last - 3}")
    assert [number for number in (-6, -5, -4, -3, -2, -1, 3, 1000) if xid(number % 2**32) in unseen] == [
        -5,
        -2,
        -1,
        3,
        1000,
    ]


def test_values_of_every_type_are_those_of_the_log(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "BATCH_BYTES", 20_000)
    create_table(source.connection)
    instance = source.track("v")
    source.pieces()
    insert_samples(source.connection)
    logged = sorted(images_by_operation(source.pieces())[2], key=lambda row: row["id"])
    found = sorted(read(source, instance), key=lambda row: row["id"])
    assert len(found) == len(logged) > 1
    types = {name: type_ for type_, name in COLUMNS.items()}
    for expected, got in zip(logged, found, strict=True):
        for name, value in expected.items():
            assert comparable(got[name]) == comparable(value), (types.get(name), name)


def test_no_rows_and_columns_without_values(source: Source) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY, a text, twice int GENERATED ALWAYS AS (id * 2) STORED)")
    instance = source.track("t")
    assert read(source, instance) == []
    source.sql("INSERT INTO t VALUES (1, NULL), (2, '')")
    assert read(source, instance) == [{"id": 1, "a": None}, {"id": 2, "a": ""}]


def test_columns_are_found_by_their_number_not_by_name(source: Source) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY, a int, b int)")
    instance = source.track("t")
    source.sql("INSERT INTO t VALUES (1, 2, 3)")
    source.sql("ALTER TABLE t RENAME a TO c; ALTER TABLE t RENAME b TO a; ALTER TABLE t RENAME TO u")
    assert read(source, instance) == [{"id": 1, "a": 2, "b": 3}]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("ALTER TABLE t DROP COLUMN a", "column 'a' was dropped since"),
        ("ALTER TABLE t ALTER a TYPE bigint", "column 'a' has another type since, bigint"),
        ("DROP TABLE t", "its table is gone at the source"),
    ],
)
def test_a_table_that_is_another_one_by_now_is_refused(source: Source, statement: str, reason: str) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY, a int)")
    instance = source.track("t")
    source.sql(statement)
    with pytest.raises(RowsNotTold, match=reason):
        read(source, instance)


def test_partitions_are_read_through_their_root_and_heirs_are_not(source: Source) -> None:
    source.sql(
        "CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);"
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);"
        "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE heir () INHERITS (t)"
    )
    whole, parent = source.track("p"), source.track("t", 2)
    source.sql("INSERT INTO p VALUES (1); INSERT INTO t VALUES (2); INSERT INTO heir VALUES (3)")
    assert (read(source, whole), read(source, parent)) == ([{"id": 1}], [{"id": 2}])


def test_row_level_security_is_told_and_never_filters(source: Source) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    instance = source.track("t")
    source.sql("INSERT INTO t VALUES (1); ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    with source.admin.snapshot(instance) as snapshot:
        assert snapshot.has_row_security
        assert sum(batch.num_rows for batch in snapshot.rows()) == 1


def test_a_transaction_that_has_not_ended_is_not_seen(source: Source) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    instance = source.track("t")
    source.pieces()
    with psycopg.connect(source.dsn) as other:
        other.execute("INSERT INTO t VALUES (1)")
        source.sql("INSERT INTO t VALUES (2)")
        with source.admin.snapshot(instance) as snapshot:
            assert sum(batch.num_rows for batch in snapshot.rows()) == 1
        other.commit()
    second, first = [transaction for piece in source.pieces() for transaction in piece.transactions]
    assert [each.tran_id in snapshot.unseen for each in (second, first)] == [False, True]
    assert second.commit_lsn < snapshot.end


WAITS = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'waiting'"


@contextmanager
def waiting_for_a_standby(source: Source) -> Iterator[None]:
    """Commits are in the log at once, and seen when this ends: a standby that is not there must confirm."""
    source.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    source.sql("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        source.sql("ALTER SYSTEM RESET synchronous_standby_names")
        source.sql("SELECT pg_reload_conf()")


def insert_until(over: threading.Event, dsn: str) -> None:
    """The setting holds a moment after it was made: rows are inserted until one waits."""
    with psycopg.connect(dsn, autocommit=True, application_name="waiting") as connection:
        connection.execute("SET synchronous_commit = on")
        while not over.wait(0.01):
            connection.execute("INSERT INTO t SELECT count(*) FROM t")


def test_a_commit_that_is_in_the_log_and_not_to_be_seen_is_known(source: Source) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    instance = source.track("t")
    source.sql("SET synchronous_commit = off")
    source.pieces()
    over = threading.Event()
    with ThreadPoolExecutor(1) as thread, waiting_for_a_standby(source):
        try:
            thread.submit(insert_until, over, source.dsn)
            end = time.monotonic() + 30
            while not source.sql(WAITS):
                assert time.monotonic() < end
                time.sleep(0.01)
        finally:
            over.set()
        committed = [each for piece in source.pieces() for each in piece.transactions]
        with source.admin.snapshot(instance) as snapshot:
            assert sum(batch.num_rows for batch in snapshot.rows()) == len(committed) - 1
        assert committed[-1].commit_lsn < snapshot.end
        assert [each for each in committed if each.tran_id in snapshot.unseen] == [committed[-1]]
    with source.admin.snapshot(instance) as snapshot:
        assert sum(batch.num_rows for batch in snapshot.rows()) == len(committed)
        assert committed[-1].tran_id not in snapshot.unseen
