"""What is written down of a command: T-SQL that calls it again, without secrets."""

from __future__ import annotations

import pytest
from hypothesis import given as examples
from hypothesis import strategies as some

from engine.commands.access import ACCESS, Command
from engine.commands.statements import MASK, literal, masked, statement_of
from engine.tsql import statements as st
from engine.tsql.calling import bound
from engine.tsql.collector_procedures import collector_procedure
from engine.tsql.evaluation import Evaluator
from engine.tsql.parser import parse
from engine.tsql.procedures import procedure_of
from engine.tsql.types import INT, Value
from tests.commands.calls import COMMANDS, given, signature

WITHOUT_CALL = {"begin_export"}
"""Their statement is the query itself."""


def statement(name):
    command = ACCESS[name]
    assert isinstance(command, Command)
    return statement_of(command, signature(name), given(name))


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITHOUT_CALL])
def test_every_command_has_t_sql_that_calls_it(name):
    text = statement(name)
    *before, call = parse(text)
    assert isinstance(call, st.Execute)
    assert all(isinstance(each, st.Use | st.Declare) for each in before)
    procedure = procedure_of(call.procedure) or collector_procedure(call.procedure)
    assert procedure is not None
    evaluator = Evaluator(Nothing())  # type: ignore[arg-type]
    values = [
        (each.name, Value(INT, 1) if each.value.sql("tsql") == "@set" else evaluator.value(each.value))
        for each in call.arguments
        if each.value is not None
    ]
    bound(procedure, values)


class Nothing:
    """Constants ask for nothing."""


def test_a_download_is_its_query():
    assert statement("begin_export") == "SELECT 1;"


def test_the_database_is_that_of_use():
    assert statement("start_job") == ("USE [the [shop]]];\nEXEC sys.sp_cdc_start_job @job_type = N'capture';")
    assert statement("connect").startswith("EXEC highwater.connect @name = N'it''s', @dsn = ")
    assert "@database = N'the [shop]'" in statement("disconnect")


def test_what_must_be_given_is_given_as_null():
    assert "@role_name = NULL" in statement("enable_table")
    assert "@index_name" not in statement("enable_table")


def test_a_collection_set_that_was_named_is_looked_up():
    assert statement("stop_collection_set") == (
        "DECLARE @set int = (SELECT collection_set_id FROM msdb.dbo.syscollector_collection_sets"
        " WHERE name = N'Change Data Capture');\n"
        "EXEC msdb.dbo.sp_syscollector_stop_collection_set @collection_set_id = @set;"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_no_statement_has_a_secret(name):
    assert "hush" not in statement(name)
    assert "secret" not in statement(name)


def test_what_is_no_secret_stays():
    assert masked("postgresql://sam:pw@db:5432/shop?sslmode=require") == (
        f"postgresql://sam:{MASK}@db:5432/shop?sslmode=require"
    )
    assert masked("host=db password=pw dbname=shop") == f"host=db password={MASK} dbname=shop"
    assert masked("CREATE LOGIN sam WITH PASSWORD = N'a''b', X = 1") == (
        f"CREATE LOGIN sam WITH PASSWORD = N{MASK}, X = 1"
    )
    assert masked("SELECT password_hash, [password] FROM t WHERE a@b = 1") == (
        "SELECT password_hash, [password] FROM t WHERE a@b = 1"
    )


@examples(some.text(some.characters(exclude_characters="@", max_codepoint=400)))
def test_no_password_of_a_dsn_is_kept(password):
    command = ACCESS["connect"]
    assert isinstance(command, Command)
    arguments = {"name": "shop", "dsn": f"postgresql://sam:{password}@db/shop"}
    assert statement_of(command, signature("connect"), arguments) == (
        f"EXEC highwater.connect @name = N'shop', @dsn = N'postgresql://sam:{MASK}@db/shop';"
    )


def test_a_batch_keeps_no_password_either():
    text = "EXEC highwater.connect N'a', N'postgresql://sam:hush''hush@db'; SELECT 'http://x:80/', @y"
    assert masked(text) == text.replace("hush''hush", MASK)


@examples(some.text())
def test_a_text_is_a_literal_that_ends_where_it_ends(text):
    inner = literal(text).removeprefix("N'").removesuffix("'")
    assert inner.replace("''", "") == inner.replace("''", "").replace("'", "")
    assert inner.replace("''", "'") == text
