"""``highwater sql`` on a started home: procedures, functions, queries and statements of the source."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from pathlib import Path
from unittest.mock import patch

import pytest

from engine.engine import Engine
from engine.settings import Settings
from tests.integration.conftest import Source
from tests.tsql.consoles import Console, held_while_written

ADVENTURE_WORKS = Path(__file__).parent / "adventure_works.sql"
DEPARTMENT = """
EXEC sys.sp_cdc_enable_db
EXEC sys.sp_cdc_enable_table
    @source_schema = N'humanresources', @source_name = N'DEPARTMENT', @role_name = N'cdc_admin',
    @capture_instance = N'HR_Department', @supports_net_changes = 1, @index_name = N'ak_department_name',
    @captured_column_list = N'DepartmentID, Name, GroupName'
EXEC highwater.sync
"""
CHANGES = """
INSERT INTO HumanResources.Department (Name, GroupName) VALUES ('MyDept', 'MyNewGroup')
UPDATE HumanResources.Department SET GroupName = 'Resource Control' WHERE GroupName = 'Inventory Management'
DELETE FROM HumanResources.Department WHERE Name = 'MyDept'
EXEC highwater.sync
"""
RANGE = """
DECLARE @from_lsn binary(10), @to_lsn binary(10)
SET @from_lsn = sys.fn_cdc_get_min_lsn('HR_Department')
SET @to_lsn = sys.fn_cdc_get_max_lsn()
"""
ALL = "cdc.fn_cdc_get_all_changes_HR_Department(@from_lsn, @to_lsn, N'all')"


@pytest.fixture
def adventure(source: Source) -> Console:
    """The tables of the documentation's samples, not enabled."""
    console = Console(source.home, source.name, source.dsn)
    console.source(ADVENTURE_WORKS.read_text())
    return console


def test_the_way_of_the_documentation(adventure: Console) -> None:
    """Enable, change, ask: one database for all of it, because starting capture takes longest."""
    enabled = adventure.must(
        f"{DEPARTMENT} EXEC sys.sp_cdc_enable_db"
        " SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()"
    )
    assert enabled.value is True
    assert [line["number"] for line in enabled.of("message")] == [22905]
    assert [line["count"] for line in adventure.must(CHANGES).of("rowcount")] == [1, 2, 1]
    _query_functions(adventure)
    _functions_of_rows(adventure)
    _forms_of_change_data(adventure)
    _tables(adventure)
    _procedures(adventure)
    _wrappers(adventure)
    _errors(adventure)
    _forms(adventure)
    _moving_to_the_source(adventure)
    _changes_of_rows_from_change_data(adventure)
    _large_results(adventure)
    _principals(adventure)


def _query_functions(console: Console) -> None:
    changes = console.must(f"{RANGE} SELECT * FROM {ALL}")
    assert changes.names[:4] == ["__$start_lsn", "__$seqval", "__$operation", "__$update_mask"]
    assert changes.types["__$start_lsn"] == "binary(10)"
    assert [(row[2], row[5], row[6]) for row in changes.rows] == [
        (2, "MyDept", "MyNewGroup"),
        (4, "Purchasing", "Resource Control"),
        (4, "Shipping", "Resource Control"),
        (1, "MyDept", "MyNewGroup"),
    ]
    net = console.must(
        f"{RANGE} SELECT * FROM cdc.fn_cdc_get_net_changes_HR_Department(@from_lsn, @to_lsn, 'all')"
        " ORDER BY DepartmentID"
    )
    assert [(row[1], row[2], row[4]) for row in net.rows] == [(4, None, "Purchasing"), (4, None, "Shipping")]
    last = console.must(
        f"{RANGE} DECLARE @last binary(10) SELECT @last = MAX(__$start_lsn) FROM {ALL}"
        " SELECT @last AS l, sys.fn_cdc_map_lsn_to_time(@last) AS t, @to_lsn AS m"
    )
    [[lsn, time, high]] = last.rows
    assert lsn == changes.rows[-1][0] <= high
    assert time.startswith("20")
    assert last.types == {"l": "binary(10)", "t": "datetime", "m": "binary(10)"}
    after = console.must(
        f"{RANGE} SET @to_lsn = sys.fn_cdc_decrement_lsn(@to_lsn)"
        f" SET @from_lsn = sys.fn_cdc_increment_lsn(@from_lsn) SELECT COUNT(*) FROM {ALL}"
    )
    assert after.value == 3 if high == lsn else 4


def _functions_of_rows(console: Console) -> None:
    flags = console.must(
        f"{RANGE} DECLARE @o int = sys.fn_cdc_get_column_ordinal('HR_Department', 'groupname')"
        " SELECT sys.fn_cdc_is_bit_set(@o, __$update_mask) AS IsGroupNmUpdated,"
        " sys.fn_cdc_has_column_changed('HR_Department', 'Name', __$update_mask) AS n,"
        f" CONVERT(varchar(22), __$start_lsn, 1) + '!' AS s, __$start_lsn FROM {ALL} WHERE __$operation = 4"
    )
    assert [row[:2] for row in flags.rows] == [[True, False], [True, False]]
    assert [row[2] for row in flags.rows] == [f"{row[3]}!" for row in flags.rows]
    joined = console.must(
        f"{RANGE} SELECT sys.fn_cdc_map_lsn_to_time(c.__$start_lsn) AS t, m.tran_end_time, d.ModifiedDate"
        f" FROM {ALL} AS c JOIN cdc.lsn_time_mapping m ON m.start_lsn = c.__$start_lsn"
        " JOIN humanresources.DEPARTMENT AS d ON d.DepartmentID = c.DepartmentID"
    )
    assert len(joined.rows) == 2
    assert all(row[0] == row[1] and row[2] for row in joined.rows)


def _forms_of_change_data(console: Console) -> None:
    """What scripts ask of changes: columns of a mask, formats, times as T-SQL writes them, other failures."""
    columns = console.must(
        "SELECT ct.Name, (SELECT STRING_AGG(QUOTENAME(cc.column_name), ',') FROM cdc.captured_columns cc"
        " WHERE sys.fn_cdc_is_bit_set(cc.column_ordinal, ct.__$update_mask) = 1) AS updated"
        " FROM cdc.HR_Department_CT ct WHERE ct.__$operation = 4 ORDER BY ct.Name"
    )
    assert columns.rows == [["Purchasing", "[GroupName]"], ["Shipping", "[GroupName]"]]
    row = console.must(
        "SELECT TOP 1 v.c, x.t, FORMAT(x.t, 'yyyy'), CONVERT(varchar(4), x.t, 120), v.n"
        " FROM cdc.HR_Department_CT o"
        " CROSS APPLY (VALUES ('name', o.Name), ('group', GroupName)) v(c, n)"
        " CROSS APPLY (SELECT sys.fn_cdc_map_lsn_to_time(o.__$start_lsn) AS t) x"
        " WHERE v.c LIKE '[^n]%' AND x.t > '20200101' AND o.__$operation = 3 AND Name = 'Shipping'"
    ).rows[0]
    year = str(row[1])[:4]
    assert (row[0], row[2:]) == ("group", [year, year, "Inventory Management"])
    numbers = console.must(
        "SELECT AVG(DepartmentID), MAX(CONVERT(int, __$update_mask)),"
        " DATEDIFF(day, '20200101', sys.fn_cdc_map_lsn_to_time(MAX(__$start_lsn)))"
        " FROM cdc.HR_Department_CT WHERE __$operation = 4"
    ).rows[0]
    assert numbers[:2] == [2, 4]
    assert numbers[2] > 2000
    text = console.must(
        "DECLARE @sql nvarchar(max) = '' SELECT @sql += ';' + column_name FROM cdc.captured_columns"
        " PRINT @sql"
    )
    assert len(text.texts[0].split(";")) == 4
    for wrong, number in (
        ("SELECT Name, COUNT(*) FROM cdc.HR_Department_CT", 8120),
        ("SELECT * FROM cdc.HR_Department_CT WHERE DepartmentID = 'x'", 245),
        ("SELECT 1, 2 UNION SELECT 1 FROM cdc.HR_Department_CT", 205),
    ):
        assert console.run(wrong).errors == [number]


def _tables(console: Console) -> None:
    instance = console.must("SELECT capture_instance, index_name, start_lsn FROM CDC.Change_Tables").rows
    assert [row[:2] for row in instance] == [["HR_Department", "AK_Department_Name"]]
    assert console.must("SELECT COUNT(*) FROM cdc.hr_department_ct").value == 6
    columns = "SELECT column_name FROM cdc.captured_columns WHERE column_ordinal > 1 ORDER BY column_ordinal"
    assert console.must(columns).rows == [["Name"], ["GroupName"]]
    tracked = "SELECT is_tracked_by_cdc, name FROM sys.tables ORDER BY name"
    assert console.must(tracked).rows == [[True, "Department"], [False, "Employee"]]
    newest = (
        "SELECT * FROM sys.dm_cdc_log_scan_sessions WHERE session_id ="
        " (SELECT MAX(session_id) FROM sys.dm_cdc_log_scan_sessions)"
    )
    assert len(console.must(newest).names) == 21
    assert console.must("SELECT COUNT(*) FROM sys.dm_cdc_errors").value == 0
    job = console.must(
        "SELECT job_type, maxtrans, continuous FROM msdb.dbo.cdc_jobs WHERE database_id = DB_ID()"
    )
    assert ["capture", 500, True] in job.rows
    missing = console.run("SELECT nope FROM cdc.change_tables")
    assert (missing.errors, missing.code) == ([207], 1)


def _procedures(console: Console) -> None:
    helped = console.must("EXEC sp_cdc_help_change_data_capture N'HUMANRESOURCES', 'department'")
    assert len(helped.names) == 15
    [row] = helped.rows
    assert row[-2:] == ["[Name]", "[DepartmentID], [Name], [GroupName]"]
    captured = console.must("EXECUTE sys.sp_cdc_get_captured_columns @capture_instance = N'hr_department'")
    assert [row[3] for row in captured.rows] == ["DepartmentID", "Name", "GroupName"]
    assert ["capture", 500, 10, True, 5] in [
        row[1:6] for row in console.must("EXEC sys.sp_cdc_help_jobs").rows
    ]
    changed = console.must("EXEC sys.sp_cdc_change_job N'capture', @maxtrans = 15 EXEC sys.sp_cdc_help_jobs")
    assert 15 in [row[2] for row in changed.rows]
    cleaned = console.must(
        "DECLARE @flag bit = 0, @retcode int, @LSN binary(10) = sys.fn_cdc_get_min_lsn('HR_Department')"
        " EXEC @retcode = sys.sp_cdc_cleanup_change_table @capture_instance = 'HR_Department',"
        " @low_water_mark = @LSN, @threshold = 1, @fCleanupFailed = @flag OUTPUT"
        " SELECT IIF(@flag > 0, 'CLEANUP FAILURE', 'CLEANUP SUCCESS'), @retcode"
    )
    assert cleaned.rows == [["CLEANUP SUCCESS", 0]]


def _wrappers(console: Console) -> None:
    """The sample of sp_cdc_generate_wrapper_function, then what it made."""
    outcome = console.must(
        """
        DECLARE @wrapper_functions TABLE (function_name SYSNAME, create_script NVARCHAR(MAX));
        INSERT INTO @wrapper_functions EXEC sys.sp_cdc_generate_wrapper_function;
        DECLARE @create_script NVARCHAR(MAX);
        DECLARE #hfunctions CURSOR LOCAL fast_forward FOR SELECT create_script FROM @wrapper_functions;
        OPEN #hfunctions;
        FETCH NEXT FROM #hfunctions INTO @create_script;
        WHILE (@@fetch_status <> -1)
        BEGIN
            EXEC sp_executesql @create_script;
            FETCH NEXT FROM #hfunctions INTO @create_script;
        END
        CLOSE #hfunctions;
        DEALLOCATE #hfunctions;
        SELECT __CDC_OPERATION, Name FROM dbo.fn_all_changes_HR_Department(NULL, NULL, 'all')
        """
    )
    assert [row[0] for row in outcome.rows] == ["I", "UN", "UN", "D"]


def _errors(console: Console) -> None:
    def errors(script: str) -> list[int]:
        return console.run(f"{RANGE} {script}").errors

    assert errors(
        "SELECT * FROM cdc.fn_cdc_get_all_changes_HR_Department(NULL, @to_lsn, 'all') SELECT 1"
    ) == [313]
    assert errors("SELECT * FROM cdc.fn_cdc_get_net_changes_gone(@from_lsn, @to_lsn, 'all')") == [208]
    assert errors("EXEC sys.sp_cdc_enable_table N'HumanResources', N'Gone', @role_name = NULL") == [22931]
    assert errors("EXEC sys.sp_cdc_get_captured_columns 'gone'") == [22981]
    assert errors("EXEC sys.sp_cdc_change_job @maxtrans = 0") == [22991]
    assert errors("EXEC sys.sp_cdc_change_job @maxtrans = 'x'") == [8114]
    assert errors("EXEC sys.sp_cdc_get_captured_columns") == [201]
    assert errors("EXEC sys.sp_cdc_help_jobs 1") == [8144]
    assert errors("EXEC sys.sp_cdc_help_jobs @x = 1") == [8145]
    assert errors("EXEC sys.sp_gone") == [2812]
    assert errors("BEGIN TRAN EXEC sys.sp_cdc_disable_db ROLLBACK") == [226]
    assert errors("DELETE cdc.change_tables") == [229]
    saved = console.run(
        f"{RANGE} DECLARE @save binary(10) = 0x00000000000000000000"
        " SET @from_lsn = sys.fn_cdc_increment_lsn(@save)"
        " IF (@from_lsn < sys.fn_cdc_get_min_lsn('HR_Department'))"
        " RAISERROR('Low endpoint of the request interval is invalid.', 16, -1)"
        f" ELSE SELECT * FROM {ALL}"
    )
    assert [(line["number"], line["severity"]) for line in saved.of("error")] == [(50000, 16)]


def _forms(console: Console) -> None:
    script = f"{RANGE} PRINT 'said' SELECT Name, __$operation FROM {ALL}"
    text = console.home.must("sql", "-d", console.database, "--format", "csv", "-q", script)
    assert list(csv.reader(io.StringIO(text)))[:2] == [["Name", "__$operation"], ["MyDept", "2"]]
    table = console.home.must("sql", "-d", console.database, "-q", script)
    assert table.splitlines()[0] == "said"
    assert "(4 rows affected)" in table
    done = console.home.call("sql", "-d", console.database, "-q", "SELECT 1/0 SELECT 2 AS two")
    assert done.returncode == 1
    assert done.stderr.startswith("Msg 8134, Level 16, State 1, Line 1")
    assert "two" in done.stdout


def _moving_to_the_source(console: Console) -> None:
    moved = console.must(
        "SELECT Name INTO #x FROM cdc.HR_Department_CT WHERE __$operation = 1"
        " DECLARE @t TABLE (n nvarchar(50), o int)"
        " INSERT INTO @t SELECT Name, __$operation FROM cdc.HR_Department_CT WHERE __$operation IN (3, 4)"
        " SELECT COUNT(*) AS n FROM @t"
        " SELECT c.capture_instance, x.Name FROM cdc.change_tables c CROSS JOIN #x x"
    )
    assert moved.rows == [[4], ["HR_Department", "MyDept"]]


def _large_results(console: Console) -> None:
    """What the process holds while rows come from Spark does not grow with them."""
    console.source("CREATE TABLE dbo.numbers AS SELECT generate_series(1, 50000) AS n")
    query = "SELECT * FROM cdc.HR_Department_CT CROSS JOIN numbers"
    with patch.dict(os.environ):  # a Connect client leaves a mark there
        engine = Engine.open(Settings(home=console.home.folder))
        try:
            for held in held_while_written(engine, console.database, query):
                assert len(held) >= 300
                assert max(held) - held[0] < 32 << 20
        finally:
            engine.close()
    console.source("DROP TABLE dbo.numbers")


def _changes_of_rows_from_change_data(console: Console) -> None:
    """What a script that loads a warehouse does, each statement kept or undone as a whole."""
    net = "cdc.fn_cdc_get_net_changes_HR_Department(@from_lsn, @to_lsn, 'all with mask')"
    console.must(
        "CREATE TABLE Target (ID smallint PRIMARY KEY, Name nvarchar(50), Lsn binary(10), At datetime2(6))"
        " INSERT Target (ID, Name) SELECT TOP 1 DepartmentID, 'old' FROM HumanResources.Department"
        " WHERE Name = 'Shipping' INSERT Target (ID, Name) VALUES (999, 'stays')"
    )
    merged = console.must(
        f"""{RANGE}
        MERGE INTO Target AS t
        USING (SELECT *, sys.fn_cdc_map_lsn_to_time(__$start_lsn) AS At FROM {net}) AS s
        ON t.ID = s.DepartmentID
        WHEN MATCHED AND s.__$operation = 1 THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.Name = s.Name, Lsn = s.__$start_lsn
        WHEN NOT MATCHED THEN INSERT (ID, Name, Lsn, At)
            VALUES (s.DepartmentID, s.Name, s.__$start_lsn, s.At);
        SELECT Name, IIF(Lsn IS NULL, 0, 1), IIF(At IS NULL, 0, 1) FROM Target ORDER BY Name
        """
    )
    assert merged.of("rowcount")[0]["count"] == 2
    assert merged.rows == [["Purchasing", 1, 1], ["Shipping", 1, 0], ["stays", 0, 0]]
    changed = console.must(
        f"""{RANGE}
        UPDATE t SET Name = c.GroupName OUTPUT inserted.Name
        FROM Target t JOIN {net} c ON c.DepartmentID = t.ID AND c.Name = 'Shipping'
        WHERE sys.fn_cdc_has_column_changed('HR_Department', 'GroupName', c.__$update_mask) = 1
            AND sys.fn_cdc_is_bit_set(2, c.__$update_mask) = 0
        DELETE Target OUTPUT deleted.Name
        WHERE EXISTS (SELECT 1 FROM {net} c WHERE c.DepartmentID = Target.ID AND c.Name = 'Purchasing')
        UPDATE Target SET Lsn = (SELECT MAX(__$start_lsn) FROM cdc.HR_Department_CT) WHERE ID = 999
        ;WITH c AS (SELECT DISTINCT DepartmentID, 1.0 AS One, Name FROM cdc.HR_Department_CT)
        INSERT Target (ID, Name) OUTPUT inserted.ID SELECT One, DepartmentID FROM c WHERE Name = 'MyDept'
        """
    )
    assert changed.rows == [["Resource Control"], ["Purchasing"], [1]]
    failed = console.run(
        "BEGIN TRAN INSERT Target (ID, Name) SELECT DepartmentID + 100, Name FROM cdc.HR_Department_CT"
        " WHERE __$operation = 2"
        " INSERT Target (ID, Name) SELECT TOP 2 1, Name FROM cdc.HR_Department_CT"
        " MERGE Target USING (SELECT Name, COUNT(*) FROM cdc.HR_Department_CT GROUP BY Name) s"
        " ON s.Name = Target.Name WHEN MATCHED THEN DELETE;"
        " SELECT @@TRANCOUNT, COUNT(*) FROM Target ROLLBACK SELECT COUNT(*) FROM Target"
        " SELECT relname FROM pg_catalog.pg_class WHERE relname LIKE '#%'"
    )
    assert failed.errors == [2627, 8155]
    assert failed.rows == [[1, 4], [3]]
    console.must("DROP TABLE Target")


def _principals(console: Console) -> None:
    console.source("DROP ROLE IF EXISTS tsql_reader")
    console.source("CREATE ROLE tsql_reader")
    as_reader = ("--as", "tsql_reader")
    try:
        denied = console.run(f"{RANGE} SELECT * FROM {ALL}", *as_reader)
        assert denied.errors == [229]
        assert console.must("EXEC sys.sp_cdc_help_change_data_capture", *as_reader).rows == []
        assert console.run("EXEC sys.sp_cdc_disable_db", *as_reader).errors == [22902]
        assert console.run("SELECT * FROM cdc.change_tables", *as_reader).errors == [229]
        assert console.run("SELECT * FROM HumanResources.Department", *as_reader).errors == [229]
        assert console.run("SELECT 1", "--as", "nobody_at_all").errors == []
        assert console.run("SELECT * FROM HumanResources.Department", "--as", "nobody_at_all").errors == [
            15517
        ]
        console.source('GRANT USAGE ON SCHEMA "HumanResources" TO tsql_reader')
        console.source('GRANT SELECT ON "HumanResources"."Department" TO tsql_reader')
        console.source("GRANT cdc_admin TO tsql_reader")
        assert len(console.must(f"{RANGE} SELECT * FROM {ALL}", *as_reader).rows) == 4
        asked = json.dumps(console.must("EXEC sys.sp_cdc_help_change_data_capture", *as_reader).rows)
        assert "HR_Department" in asked
    finally:
        console.source("DROP OWNED BY tsql_reader")
        console.source("DROP ROLE tsql_reader")


def test_samples_of_tables_and_jobs(adventure: Console) -> None:
    """The documentation's calls for HumanResources.Employee, in order."""
    adventure.must("EXEC sys.sp_cdc_enable_db")
    adventure.must(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'HumanResources', @source_name = N'Employee',"
        " @role_name = N'cdc_Admin'; EXEC highwater.sync"
    )
    adventure.must("UPDATE HumanResources.Employee SET VacationHours = 5 WHERE BusinessEntityID = 1")
    adventure.must("ALTER TABLE HumanResources.Employee ADD Test_Column int NULL; EXEC highwater.sync")
    flagged = adventure.must(
        """
        DECLARE @from_lsn binary(10), @to_lsn binary(10), @VacationHoursOrdinal int;
        SET @from_lsn = sys.fn_cdc_get_min_lsn('HumanResources_Employee');
        SET @to_lsn = sys.fn_cdc_get_max_lsn();
        SET @VacationHoursOrdinal =
            sys.fn_cdc_get_column_ordinal('HumanResources_Employee', 'VacationHours');
        SELECT sys.fn_cdc_is_bit_set(@VacationHoursOrdinal, __$update_mask) AS 'VacationHours', *
        FROM cdc.fn_cdc_get_net_changes_HumanResources_Employee(@from_lsn, @to_lsn, 'all with mask');
        """
    )
    assert [(row[0], row[2], row[-1]) for row in flagged.rows] == [(True, 4, 5)]
    [history] = adventure.must("EXEC sys.sp_cdc_get_ddl_history N'HumanResources_Employee'").rows
    assert "Test_Column" in history[4]
    assert history[3] is False
    package = adventure.must(
        """
        DECLARE @CS nvarchar(30) = CONVERT(nvarchar(30), sys.fn_cdc_get_min_lsn('HumanResources_Employee'), 2)
        DECLARE @start binary(10) = sys.fn_cdc_increment_lsn(CONVERT(binary(10), '0x' + @CS, 1))
        SELECT COUNT(*) FROM cdc.fn_cdc_get_all_changes_HumanResources_Employee(
            @start, sys.fn_cdc_get_max_lsn(), 'all')
        """
    )
    assert package.value == 1
    adventure.must("EXEC sys.sp_cdc_stop_job N'capture'; EXEC sys.sp_cdc_start_job")
    adventure.must("EXEC sys.sp_cdc_drop_job N'capture'; EXEC sys.sp_cdc_add_job @job_type = N'capture'")
    adventure.must("EXEC sys.sp_cdc_disable_table N'HumanResources', N'Employee', N'HumanResources_Employee'")
    assert adventure.must("EXEC sys.sp_cdc_help_change_data_capture").rows == []
    adventure.must("EXEC sys.sp_cdc_disable_db")
    flag = "SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()"
    assert adventure.must(flag).value is False


def test_a_reader_that_has_had_enough_is_no_failure(source: Source) -> None:
    script = "SELECT 1 AS first\nGO\n" + "SELECT REPLICATE('x', 8000) AS line\nGO\n" * 20
    command = source.home.command("sql", "-d", source.name, "--format", "csv", "-q", script)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=source.home.environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "first\n"
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()
    assert (process.returncode, said) == (0, "")
