"""The demo company in a real database."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from engine.demo import install, run
from engine.demo.company import company
from engine.errors import DemoNamesTaken, SourceUnreachable
from engine.model.workload_mix import Mix

TABLES = [f'"{table.schema}"."{table.table}"' for table in company()]


def contents(dsn: str) -> dict[str, list[tuple[object, ...]]]:
    with psycopg.connect(dsn) as connection:
        return {
            name: connection.execute(f"SELECT * FROM {name} t ORDER BY t::text").fetchall() for name in TABLES
        }


def go_on(seconds: float) -> bool:
    return False


@pytest.fixture(scope="module")
def company_template(postgres) -> str:
    """A database with the company, which tests copy: installing it takes longer than copying."""
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE company_template")
    install(postgres.dsn("company_template"))
    return "company_template"


@pytest.fixture
def new_company(postgres, company_template, new_database) -> Callable[[], str]:
    def make() -> str:
        dsn = new_database()
        name = conninfo_to_dict(dsn)["dbname"]
        with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name}")
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {company_template}")
        return dsn

    return make


@pytest.fixture
def company_dsn(new_company) -> str:
    return new_company()


def test_it_is_there_once_however_often_it_is_installed(source_dsn):
    assert install(source_dsn) is True
    before = contents(source_dsn)
    assert install(source_dsn) is False
    assert contents(source_dsn) == before
    assert [len(rows) for rows in before.values()] == [len(table.rows) for table in company()]


def test_two_at_once_install_it_once(source_dsn):
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(install, [source_dsn, source_dsn])) == [False, True]


def test_it_is_the_same_in_every_database(new_company, source_dsn):
    install(source_dsn)
    assert contents(new_company()) == contents(source_dsn)


def test_foreign_schemas_are_left_alone(source_dsn):
    with psycopg.connect(source_dsn, autocommit=True) as connection:
        connection.execute('CREATE SCHEMA "Sales"')
    with pytest.raises(DemoNamesTaken, match="Sales"):
        install(source_dsn)
    with psycopg.connect(source_dsn) as connection:
        assert connection.execute(
            "SELECT count(*) FROM pg_namespace WHERE nspname IN ('HumanResources', 'Production')"
        ).fetchone() == (0,)


def test_an_installation_that_fails_leaves_nothing(source_dsn, monkeypatch):
    broken = [*itertools.islice(company(), 3)]
    monkeypatch.setattr("engine.demo.installation.company", lambda: iter([*broken, broken[0]]))
    with pytest.raises(psycopg.errors.UniqueViolation):
        install(source_dsn)
    with psycopg.connect(source_dsn) as connection:
        assert connection.execute(
            "SELECT count(*) FROM pg_class WHERE relname = 'Department'"
        ).fetchone() == (0,)


def test_the_samples_statements_run_as_they_are_written(company_dsn):
    with psycopg.connect(company_dsn) as connection:
        made = connection.execute(
            """INSERT INTO "HumanResources"."Department" ("Name", "GroupName")
               VALUES ('MyDept', 'MyNewGroup')"""
        )
        moved = connection.execute(
            """UPDATE "HumanResources"."Department" SET "GroupName" = 'Resource Control'
               WHERE "GroupName" = 'Inventory Management'"""
        )
        gone = connection.execute("""DELETE FROM "HumanResources"."Department" WHERE "Name" = 'MyDept'""")
        assert (made.rowcount, moved.rowcount, gone.rowcount) == (1, 3, 1)


def test_a_run_is_repeatable(new_company):
    first, second = new_company(), new_company()
    summaries = [run(dsn, 400, 1, 42, go_on) for dsn in (first, second)]
    assert summaries[0].committed == summaries[1].committed > 300
    assert summaries[0].rows == summaries[1].rows
    assert contents(first) == contents(second)


def test_a_second_run_with_the_same_seed_goes_on(company_dsn):
    first = run(company_dsn, 400, 0.5, 42, go_on)
    second = run(company_dsn, 400, 0.5, 42, go_on)
    assert first.refused == second.refused == 0
    assert second.committed > 150


def test_all_verbs_occur_and_rolled_back_transactions_leave_nothing(company_dsn):
    summary = run(company_dsn, 400, 1, 1, go_on)
    assert summary.rolled_back > 0
    assert all(summary.rows[verb] for verb in ("INSERT", "UPDATE", "DELETE"))
    assert summary.committed + summary.rolled_back == 400
    with psycopg.connect(company_dsn) as connection:
        orphans = connection.execute(
            """SELECT count(*) FROM "Sales"."SalesOrderHeader" h WHERE "SalesOrderID" > 500 AND NOT EXISTS
               (SELECT FROM "Sales"."SalesOrderDetail" d WHERE d."SalesOrderID" = h."SalesOrderID")"""
        ).fetchone()
    assert orphans == (0,)


def test_two_runs_at_once_get_along(company_dsn):
    with ThreadPoolExecutor(2) as pool:
        summaries = list(pool.map(lambda seed: run(company_dsn, 300, 1, seed, go_on), (1, 2)))
    assert all(summary.committed > 200 for summary in summaries)


def test_it_keeps_the_pace(company_dsn):
    now = 0.0
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        nonlocal now
        waits.append(seconds)
        now += seconds
        return False

    run(company_dsn, 4, 2, 1, wait, lambda: now)
    assert waits == pytest.approx([0] + [0.25] * 7)

    waits.clear()
    run(company_dsn, 4, 2, 1, wait, lambda: now, Mix(burst=3))
    assert waits == pytest.approx([0, 0, 0, 0.75, 0, 0, 0.75, 0])


def test_a_mix_changes_its_tables_alone_and_as_much_at_once_as_asked(company_dsn):
    before = contents(company_dsn)
    summary = run(company_dsn, 100, 0.2, 1, go_on, mix=Mix("Production", updates=1, rows=50))
    after = contents(company_dsn)
    changed = {name for name in after if after[name] != before[name]}
    assert changed
    assert all(name.startswith('"Production"') for name in changed)
    assert summary.rows.total() > summary.committed * 40


def test_it_stops_when_told(company_dsn):
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, company_dsn, 10, None, 1, stop.wait)
        stop.set()
        assert running.result(10).seconds < 10


def test_the_summary_is_one_line(company_dsn):
    summary = run(company_dsn, 100, 0.1, 5, go_on)
    summary.seconds = 2.0
    assert summary.line().startswith("10 transactions in 2.0 s (5.0/s): ")
    assert summary.line().endswith("; seed 5")


def test_an_unreachable_server_is_named():
    with pytest.raises(SourceUnreachable, match="'nowhere'"):
        install("postgresql://127.0.0.1:1/nowhere")
