"""What the command says when it cannot do what it was asked: one line, exit code 1, and nothing half done."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.debian_postgres import debian_postgres


def refusal(home, *arguments, code=1):
    """The message of a command that must fail."""
    done = home.call(*arguments)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    return done.stderr.strip()


@pytest.fixture(scope="module")
def errors_source(home, postgres):
    """One enabled source for all questions that change nothing."""
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE refusals")
    dsn = postgres.dsn("refusals")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        connection.execute("CREATE TABLE keyless (a int)")
        connection.execute("CREATE SCHEMA other")
        connection.execute("CREATE TABLE other.keyless (a int)")
    home.must("connect", "refusals", dsn)
    home.must("enable", "-d", "refusals", "t")
    home.must("sync", "-d", "refusals", "--timeout", "600")
    yield dsn
    home.must("disable", "-d", "refusals")


REFUSALS = [
    (
        ["capture", "scan", "-d", "refusals"],
        "Msg 22903, Level 16, State 1: Another session (cdc.refusals_capture) already reads the log",
    ),
    (
        ["capture", "scan", "-d", "refusals", "--pollinginterval", "5"],
        "Msg 22999, Level 16, State 1: The value of",
    ),
    (["changes", "-d", "nowhere", "x"], "Msg 911, Level 16, State 1: Database 'nowhere' does not exist."),
    (
        ["changes", "nope"],
        "Msg 208, Level 16, State 1: Invalid object name 'cdc.fn_cdc_get_all_changes_nope'.",
    ),
    (["changes", "public_t", "--row-filter", "some"], "Msg 313, Level 16, State 3: An insufficient number"),
    (
        ["changes", "public_t", "--from", "0x00000000000000000001"],
        "Msg 313, Level 16, State 3: An insufficient",
    ),
    (
        ["changes", "public_t", "--to", "0xFF" + 18 * "0"],
        "Msg 313, Level 16, State 3: An insufficient number",
    ),
    (["changes", "public_t", "--from", "12"], "Msg 8114, Level 16, State 5: Error converting data type"),
    (
        ["enable", "public.missing"],
        "Msg 22931, Level 16, State 1: Source table 'public.missing' does not exist",
    ),
    (["enable", "missing"], "Msg 22931, Level 16, State 1: "),
    (["enable", "t"], "Msg 22926, Level 16, State 1: Capture instance name 'public_t' already exists"),
    (["enable", "public.keyless", "--net"], "Msg 22939, Level 16, State 1: "),
    (["enable", "t", "--capture-instance", "i", "--columns", "id,nope"], "Msg 22930, Level 16, State 1: "),
    (["enable", "t", "--capture-instance", "i", "--index", "nope"], "Msg 22928, Level 16, State 1: "),
    (["disable", "public.keyless"], "Msg 22985, Level 16, State 1: "),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSALS, ids=[" ".join(words) for words, _ in REFUSALS])
def test_the_message_has_the_originals_number(home, errors_source, arguments, message):
    if "-d" not in arguments:
        arguments = [arguments[0], "-d", "refusals", *arguments[1:]]
    assert refusal(home, *arguments).startswith(message)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["enable", "a.b.c"], "'a.b.c' is not a table name"),
        (["enable", "keyless"], "other.keyless, public.keyless"),
        (["changes", "public_t", "--format", "xml"], "xml"),
    ],
)
def test_a_call_that_cannot_be_read_is_a_usage_error(home, errors_source, arguments, words):
    message = refusal(home, arguments[0], "-d", "refusals", *arguments[1:], code=2)
    assert words in " ".join(message.replace("│", " ").split())


def test_enabling_an_enabled_database_is_a_message_not_a_failure(home, errors_source):
    done = home.call("enable", "-d", "refusals")
    assert done.returncode == 0
    assert done.stderr.startswith("Msg 22905, Level 10, State 1: ")


def test_a_process_ends_with_the_message_and_1(home, errors_source):
    done = home.run("changes", "-d", "refusals", "nope")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Msg 208, Level 16, State 1: Invalid object name 'cdc.fn_cdc_get_all_changes_nope'.\n"
    )


@pytest.mark.parametrize(
    "dsn", ["postgresql://127.0.0.1:1/shop", "postgresql://nobody.invalid/shop", "no dsn at all"]
)
def test_a_wrong_dsn(home, dsn):
    assert "Msg 500" in refusal(home, "connect", "wrong", dsn)
    assert "Msg 911" in refusal(home, "dsn", "-d", "wrong")


@pytest.mark.parametrize("dsn", ["not a dsn", "http://server/shop", "shop", "postgresql://u:s3cret@h:x y/"])
def test_a_text_that_is_no_dsn_is_told_what_one_looks_like(home, dsn):
    message = refusal(home, "connect", "bad", dsn)
    assert message.startswith("Msg 50001, Level 16, State 1: Source database 'bad' cannot be reached: ")
    assert message.endswith("Write it like postgresql://user:password@host:5432/database")
    assert "s3cret" not in message
    assert "Msg 911" in refusal(home, "dsn", "-d", "bad")


def test_a_login_that_fails_does_not_show_the_password(home):
    message = refusal(home, "connect", "wrong", "postgresql://u:s3cret@127.0.0.1:1/shop")
    assert "s3cret" not in message


def test_a_role_without_rights_is_told_what_it_needs_and_a_table_it_does_not_own_stays_as_it_is(source):
    source.sql(
        "DROP ROLE IF EXISTS limited",
        "CREATE ROLE limited LOGIN",
        "CREATE TABLE t (id int PRIMARY KEY)",
    )
    database = source.sql("SELECT current_database()")[0][0]
    limited = make_conninfo(source.dsn, user="limited")
    message = refusal(source.home, "connect", "limited", limited)
    assert message.startswith("Msg 50002, Level 16, State 1: ")
    assert 'ALTER ROLE "limited" REPLICATION' in message
    assert "Msg 911" in refusal(source.home, "dsn", "-d", "limited")

    source.sql("ALTER ROLE limited REPLICATION", f"GRANT CREATE ON DATABASE {database} TO limited")
    source.home.must("connect", "limited", limited)
    message = refusal(source.home, "enable", "-d", "limited", "t")
    assert message.startswith("Msg 22832, Level 16, State 1: ")
    assert 'GRANT "postgres" TO "limited"' in message
    assert source.sql("SELECT relreplident::text FROM pg_class WHERE relname = 't'") == [("d",)]
    assert source.sql("SELECT 1 FROM pg_publication") == []
    assert source.sql("SELECT 1 FROM pg_replication_slots WHERE database = current_database()") == []
    source.sql("DROP OWNED BY limited", "DROP ROLE limited")


def test_a_server_that_does_not_log_logically(home):
    with debian_postgres({"wal_level": "replica"}) as server:
        message = refusal(home, "connect", "replica", server.dsn())
        assert message.startswith("Msg 50002, Level 16, State 1: ")
        assert "ALTER SYSTEM SET wal_level = 'logical'" in message
        assert "Msg 911" in refusal(home, "dsn", "-d", "replica")
