"""T-SQL and PySpark of an action."""

from __future__ import annotations

import ast

from dashboard import statements
from dashboard.statements import EnableTable


def test_enabling_names_only_what_differs_from_the_defaults() -> None:
    statement = statements.enable_tables("demo", [EnableTable("Sales", "Order's")], with_database=True)
    assert statement.tsql == (
        "USE [demo];\n"
        "EXEC sys.sp_cdc_enable_db;\n"
        "EXEC sys.sp_cdc_enable_table\n"
        "    @source_schema = N'Sales',\n"
        "    @source_name = N'Order''s',\n"
        "    @role_name = NULL;"
    )


def test_a_column_list_quotes_every_name() -> None:
    table = EnableTable("s", "t", captured_columns=("a", "b,c", "d]e"), role_name="cdc_reader")
    assert table.captured_column_list == "[a], [b,c], [d]]e]"
    statement = statements.enable_tables("demo", [table], with_database=False)
    assert "@captured_column_list = N'[a], [b,c], [d]]e]'" in statement.tsql
    assert "@role_name = N'cdc_reader'" in statement.tsql


def test_every_pyspark_statement_is_python() -> None:
    for statement in (
        statements.enable_db("demo"),
        statements.enable_tables(
            "d'b", [EnableTable("s", "t", index_name="i", supports_net_changes=False)], True
        ),
        statements.disable_table("demo", "s", "t", "s_t"),
        statements.add_job("demo"),
        statements.start_job("demo"),
        statements.stop_job("demo"),
        statements.change_job("demo", maxtrans=500, continuous=True),
        statements.change_job("demo", "cleanup", retention=60, schedule="0 2 * * *"),
        statements.update_collection_set("it's", "*/2 * * * *", 7),
        statements.get_changes("demo", "s_t", True, "0x" + "0" * 20, "0x" + "F" * 20, "all with mask"),
    ):
        ast.parse(statement.pyspark)


def test_a_statement_has_the_parameters_that_change_and_no_other() -> None:
    capture = statements.change_job("demo", maxtrans=500, continuous=False)
    assert capture.tsql == (
        "USE [demo];\nEXEC sys.sp_cdc_change_job @job_type = N'capture',\n"
        "    @maxtrans = 500, @continuous = 0;"
    )
    cleanup = statements.change_job("demo", "cleanup", schedule="it's")
    assert cleanup.tsql.endswith("@job_type = N'cleanup',\n    @schedule = N'it''s';")
    assert cleanup.pyspark.endswith("""engine.change_job(database, 'cleanup', schedule="it's")""")
    collector = statements.update_collection_set("set", None, 3)
    assert collector.tsql.endswith("@name = N'set', @days_until_expiration = 3;")


def test_a_query_is_the_function_over_a_closed_interval() -> None:
    statement = statements.get_changes("demo", "s_t", False, "0x" + "0" * 20, "0x" + "F" * 20, "all")
    assert "FROM cdc.[fn_cdc_get_all_changes_s_t](@from_lsn, @to_lsn, N'all')" in statement.tsql
