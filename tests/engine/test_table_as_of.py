"""A table as of an LSN, against copies taken of the real table while others write to it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from engine.engine import Engine
from engine.errors import (
    InvalidObjectName,
    RangeOutsideValidity,
    RowIdentifierMissing,
    RowsNotTold,
    SourceDenied,
    SyncTimeout,
)
from engine.model.lsn import Lsn
from engine.model.user import Role, User
from engine.query import table_as_of as as_of
from engine.sources.base import UnseenTransactions
from tests.engine.test_with_agent import agent, engine

__all__ = ["agent", "engine"]

NAME = "public_t"
Sql = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def table(engine: Engine, enabled: str, agent: None, sql: Sql) -> str:
    """public.t is tracked and has rows from before."""
    sql('CREATE TABLE t (id int PRIMARY KEY, "ID" numeric(8,2), a text, at timestamptz, list int[])')
    sql(
        "INSERT INTO t SELECT n, n, 'row ' || n, '0001-01-01 00:00+00', ARRAY[n, NULL]"
        " FROM generate_series(1, 50) n"
    )
    engine.enable_table(enabled, "public", "t", role_name=None)
    engine.sync(enabled, 600)
    return enabled


def rows_at(engine: Engine, database: str, lsn: Lsn, name: str = NAME) -> list[tuple[Any, ...]]:
    with engine.table_as_of(database, name, lsn) as table:
        columns = [column.to_pylist() for column in table.frame.toArrow().columns]
    assert kept(engine) == []
    return sorted(zip(*columns, strict=True))


def kept(engine: Engine) -> list[str]:
    folder = engine.results_folder()
    assert folder is not None
    return [path.name for path in folder.iterdir()] if folder.exists() else []


def high(engine: Engine, database: str) -> Lsn:
    engine.sync(database, 600)
    found = engine.get_max_lsn(database)
    assert found is not None
    return found


def test_the_table_is_told_as_it_was_while_others_write(
    engine: Engine, table: str, sql: Sql, source_dsn: str
) -> None:
    stop = threading.Event()

    def write(seed: int) -> None:
        """Writers of their own keys, which change, come and go, in transactions that overlap."""
        chance, keys = random.Random(seed), range(seed * 100, seed * 100 + 20)
        with psycopg.connect(source_dsn) as connection:
            while not stop.wait(0.02):
                for _ in range(chance.randint(1, 4)):
                    id, other = chance.sample(keys, 2)
                    connection.execute(
                        chance.choice(
                            [
                                f"INSERT INTO t VALUES ({id}, {seed}, 'new') ON CONFLICT DO NOTHING",
                                f"UPDATE t SET a = a || 'x' WHERE id = {id}",
                                f"UPDATE t SET id = {other} WHERE id = {id}"
                                f" AND NOT EXISTS (SELECT FROM t WHERE id = {other})",
                                f"DELETE FROM t WHERE id = {id}",
                            ]
                        )
                    )
                connection.commit() if chance.random() < 0.9 else connection.rollback()

    threads = [threading.Thread(target=write, args=(seed,)) for seed in (1, 2, 3)]
    started = high(engine, table)
    copies = [(started, sorted(sql("SELECT * FROM t")))]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            copies.append(copied(engine, table, source_dsn))
        for lsn, expected in copies[1:]:
            assert rows_at(engine, table, lsn) == expected
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    for lsn, expected in copies:
        assert rows_at(engine, table, lsn) == expected
    assert rows_at(engine, table, high(engine, table)) == sorted(sql("SELECT * FROM t"))


def copied(engine: Engine, database: str, dsn: str) -> tuple[Lsn, list[tuple[Any, ...]]]:
    """The rows when a transaction of our own was the newest commit, and its commit LSN.

    Writers wait meanwhile; the row that it writes tells its commit among those captured.
    """
    with psycopg.connect(dsn) as connection:
        connection.execute("LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE")
        connection.execute(
            'INSERT INTO t VALUES (-1) ON CONFLICT (id) DO UPDATE SET "ID" = coalesce(t."ID", 0) + 1'
        )
        rows = sorted(connection.execute("SELECT * FROM t").fetchall())
    upto = high(engine, database)
    low = engine.get_min_lsn(database, NAME)
    changes = engine.get_all_changes(database, NAME, low, upto).toArrow()
    own = zip(changes["id"].to_pylist(), changes["__$start_lsn"].to_pylist(), strict=True)
    return Lsn.parse([lsn for id, lsn in own if id == -1][-1]), rows


def test_a_transaction_that_commits_later_is_left_out(
    engine: Engine, table: str, sql: Sql, source_dsn: str
) -> None:
    with psycopg.connect(source_dsn) as late:
        late.execute("DELETE FROM t WHERE id <= 10")
        sql("UPDATE t SET a = 'new' WHERE id = 11")
        before = high(engine, table)
        expected = sorted(sql("SELECT * FROM t"))
        sql("DELETE FROM t WHERE id = 11")
        assert rows_at(engine, table, before) == expected
        late.commit()
    assert rows_at(engine, table, before) == expected
    assert len(rows_at(engine, table, high(engine, table))) == 39


def test_commits_that_a_snapshot_lacks_are_found_by_their_transactions(
    engine: Engine, table: str, sql: Sql, spark: Any
) -> None:
    [(number,)] = sql("INSERT INTO t VALUES (100) RETURNING pg_current_xact_id()::text::bigint & 4294967295")
    upto = high(engine, table)
    [row] = engine.get_all_changes(table, NAME, engine.get_min_lsn(table, NAME), upto).collect()
    tran_id = int(str(number)).to_bytes(4, "big")
    for ranges, expected in (
        (((tran_id, tran_id),), [row["__$start_lsn"]]),
        (((b"\0\0\0\0", b"\0\0\0\1"), (tran_id, b"\xff\xff\xff\xff")), [row["__$start_lsn"]]),
        ((), []),
    ):
        found = as_of.unseen_commits(spark, engine._lake, table, UnseenTransactions(ranges), upto)
        assert [str(lsn) for lsn in found if str(lsn) == row["__$start_lsn"]] == expected
        below = as_of.unseen_commits(
            spark, engine._lake, table, UnseenTransactions(ranges), Lsn.parse(row["__$start_lsn"]).previous()
        )
        assert row["__$start_lsn"] not in map(str, below)


def test_an_lsn_outside_the_validity_interval_is_refused(engine: Engine, table: str) -> None:
    low, upto = engine.get_min_lsn(table, NAME), high(engine, table)
    for lsn in (None, low.previous(), upto.next(), Lsn.MAX):
        with pytest.raises(RangeOutsideValidity, match=r"highwater\.table_as_of"):
            engine.table_as_of(table, NAME, lsn)
    assert len(rows_at(engine, table, low)) == 50
    with pytest.raises(InvalidObjectName):
        engine.table_as_of(table, "nobody", low)


def test_a_table_without_a_row_identifier_is_refused(engine: Engine, table: str, sql: Sql) -> None:
    sql("CREATE TABLE bare (a int)")
    engine.enable_table(table, "public", "bare", role_name=None)
    with pytest.raises(RowIdentifierMissing, match="public_bare"):
        engine.table_as_of(table, "public_bare", high(engine, table))


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("ALTER TABLE t DROP COLUMN a", "column 'a' was dropped since"),
        ('ALTER TABLE t ALTER "ID" TYPE numeric(9,2)', "column 'ID' has another type since"),
        (
            "ALTER TABLE t ALTER a TYPE text USING upper(a)",
            "a statement may have changed rows beside the log",
        ),
    ],
)
def test_ddl_that_hides_what_was_is_refused_and_later_lsns_are_not(
    engine: Engine, table: str, sql: Sql, statement: str, reason: str
) -> None:
    before = high(engine, table)
    sql(statement)
    with pytest.raises(RowsNotTold, match=reason):
        engine.table_as_of(table, NAME, before)
    after = high(engine, table)
    expected = len(sql("SELECT id FROM t"))
    sql("DELETE FROM t WHERE id < 5")
    assert len(rows_at(engine, table, after)) == expected
    assert kept(engine) == []


def test_rows_that_left_with_a_partition_are_not_guessed(engine: Engine, table: str, sql: Sql) -> None:
    sql(
        "CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);"
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);"
        "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)"
    )
    engine.enable_table(table, "public", "p", role_name=None)
    sql("INSERT INTO p VALUES (1), (11)")
    both = high(engine, table)
    sql("CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (20) TO (30); INSERT INTO p VALUES (21)")
    assert rows_at(engine, table, both, "public_p") == [(1,), (11,)]
    sql("ALTER TABLE p DETACH PARTITION p2")
    engine.sync(table, 600)
    with pytest.raises(RowsNotTold, match="DETACH PARTITION p2"):
        engine.table_as_of(table, "public_p", both)


def test_a_column_that_was_added_or_renamed_hides_nothing(engine: Engine, table: str, sql: Sql) -> None:
    before, expected = high(engine, table), sorted(sql("SELECT * FROM t"))
    sql("ALTER TABLE t ADD COLUMN later int DEFAULT 7")
    sql("ALTER TABLE t RENAME a TO b")
    sql("UPDATE t SET b = 'other', later = 8")
    assert rows_at(engine, table, before) == expected


def test_who_may_not_read_at_the_source_is_refused(engine: Engine, table: str, sql: Sql) -> None:
    upto = high(engine, table)
    viewer = engine.acting_as(User("ann", Role.VIEWER))
    with pytest.raises(SourceDenied):
        viewer.table_as_of(table, NAME, upto)
    role = f"reader_{table}_{random.getrandbits(32)}"
    sql(f"CREATE ROLE {role}")
    try:
        sql(f"GRANT SELECT ON t TO {role}")
        reader = engine.acting_as(User("bob", Role.VIEWER, role))
        assert len(rows_at(reader, table, upto)) == 50
        sql("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
        with pytest.raises(RowsNotTold, match="row-level security"):
            reader.table_as_of(table, NAME, upto)
        assert len(rows_at(engine, table, upto)) == 50
    finally:
        sql(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_what_is_cancelled_leaves_nothing_behind(engine: Engine, table: str) -> None:
    upto = high(engine, table)
    for number in (1, 2, 3, 4):
        calls = iter(range(1, 100))

        def cancel(at: int = number, calls: Iterator[int] = calls) -> None:
            if next(calls) == at:
                raise InterruptedError

        with pytest.raises(InterruptedError):
            engine.table_as_of(table, NAME, upto, check=cancel)
        assert kept(engine) == []


def test_a_capture_job_that_is_stopped_is_said_at_once(engine: Engine, table: str) -> None:
    upto = high(engine, table)
    engine.stop_job(table, "capture")
    with pytest.raises(SyncTimeout, match="stopped"):
        engine.table_as_of(table, NAME, upto)
    assert kept(engine) == []
