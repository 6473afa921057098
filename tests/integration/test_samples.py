"""Every sample of the original's documentation (reference/samples.md), as it is written there.

Between samples stands what a reader of the page would wait for: ``EXEC highwater.sync`` where the original
says that the capture job must have run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.conftest import Source
from tests.tsql.consoles import Console

ADVENTURE_WORKS = Path(__file__).parent / "adventure_works.sql"
ENABLE_EMPLOYEE = """
EXEC sys.sp_cdc_enable_table
    @source_schema = N'HumanResources'
  , @source_name = N'Employee'
  , @role_name = N'cdc_Admin';
"""
ENABLE_DEPARTMENT = """
EXEC sys.sp_cdc_enable_table
    @source_schema = N'HumanResources'
  , @source_name = N'Department'
  , @role_name = N'cdc_admin'
  , @capture_instance = N'HR_Department'
  , @supports_net_changes = 1
  , @index_name = N'AK_Department_Name'
  , @captured_column_list = N'DepartmentID, Name, GroupName'
  , @filegroup_name = N'PRIMARY';
"""


@pytest.fixture
def adventure(source: Source) -> Console:
    console = Console(source.home, source.name, source.dsn)
    console.source(ADVENTURE_WORKS.read_text())
    return console


def test_setup_jobs_and_repair(adventure: Console) -> None:
    """The tables "Setup", "Jobs", and of "Monitoring and repair" what asks for no changes."""
    adventure.must("EXEC sys.sp_cdc_enable_db")
    enabled = "SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()"
    assert adventure.must(enabled).value is True
    _enabling_tables(adventure)
    _schedules(adventure)
    _jobs(adventure)
    _known_issues(adventure)
    _text_size(adventure)
    adventure.must("EXEC sys.sp_cdc_disable_db")
    assert adventure.must(enabled).value is False
    assert adventure.source("SELECT count(*) FROM pg_roles WHERE rolname = 'cdc_Admin'") == [(1,)]
    _after_a_restore(adventure)


def _instances(console: Console) -> list[tuple[str, bool, str | None, str | None, str | None]]:
    rows = console.must("EXEC sys.sp_cdc_help_change_data_capture").rows
    return sorted((row[2], row[7], row[9], row[10], row[11]) for row in rows)


def _enabling_tables(console: Console) -> None:
    console.must(ENABLE_EMPLOYEE)
    console.must(ENABLE_DEPARTMENT)
    assert _instances(console) == [
        ("HR_Department", True, "cdc_admin", "AK_Department_Name", "PRIMARY"),
        ("HumanResources_Employee", True, "cdc_Admin", "Employee_pkey", None),
    ]
    console.must(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'HumanResources', @source_name = N'Employee',"
        " @capture_instance = N'HumanResources_Employee'"
    )
    assert [each[0] for each in _instances(console)] == ["HR_Department"]
    console.must("CREATE TABLE dbo.MyTable (ID int PRIMARY KEY, Name nvarchar(50))")
    for options, expected in (
        ("@role_name = N'MyRole', @filegroup_name = N'pg_default'", ("MyRole", "pg_default")),
        ("@role_name = NULL", (None, None)),
        ("@role_name = N'MyRole', @supports_net_changes = 1", ("MyRole", None)),
        ("@role_name = NULL, @captured_column_list = N'ID, Name'", (None, None)),
    ):
        console.must(
            f"EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'MyTable', {options}"
        )
        [found] = [each for each in _instances(console) if each[0] == "dbo_MyTable"]
        assert (found[2], found[4]) == expected
        console.must(
            "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'MyTable',"
            " @capture_instance = N'dbo_MyTable'"
        )
    no_filegroup = (
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'MyTable', @role_name = NULL,"
        " @filegroup_name = N'MyDB_CT'"
    )
    assert console.run(no_filegroup).errors == [22973]


def _jobs(console: Console) -> None:
    def jobs() -> dict[str, list[object]]:
        outcome = console.must("EXEC sys.sp_cdc_help_jobs")
        assert outcome.names == [
            "job_id", "job_type", "maxtrans", "maxscans", "continuous", "pollinginterval", "retention",
            "threshold",
        ]  # fmt: skip
        return {row[1]: row[2:] for row in outcome.rows}

    assert jobs() == {"capture": [500, 10, True, 5, 0, 0], "cleanup": [0, 0, False, 0, 4320, 5000]}
    console.must("EXEC sys.sp_cdc_change_job @job_type = N'capture', @maxscans = 1000, @maxtrans = 15")
    console.must("EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = 2880")
    assert jobs() == {"capture": [15, 1000, True, 5, 0, 0], "cleanup": [0, 0, False, 0, 2880, 5000]}
    console.must("EXEC sys.sp_cdc_drop_job @job_type = N'cleanup'")
    assert list(jobs()) == ["capture"]
    console.must("EXEC sys.sp_cdc_add_job @job_type = N'cleanup', @start_job = 0, @retention = 5760")
    assert jobs()["cleanup"] == [0, 0, False, 0, 5760, 5000]
    console.must("EXEC sys.sp_cdc_drop_job N'capture'; EXEC sys.sp_cdc_add_job @job_type = N'capture'")
    assert jobs()["capture"] == [500, 10, True, 5, 0, 0]
    console.must("EXEC sys.sp_cdc_stop_job @job_type = N'capture'")
    console.must("EXEC sys.sp_cdc_start_job; EXEC sys.sp_cdc_start_job @job_type = N'cleanup'")


def _schedules(console: Console) -> None:
    """The steps of both jobs, and when they run: msdb's side of them."""
    assert console.run("EXEC sys.sp_MScdc_capture_job").errors == [22903]
    console.must("EXEC highwater.sync; EXEC sys.sp_MScdc_cleanup_job")
    names = f"N'cdc.{console.database}_cleanup'"
    console.must("EXEC sys.sp_cdc_change_job N'cleanup', @schedule = N'30 4 * * *'")
    asked = console.must(f"EXEC msdb.dbo.sp_help_jobschedule @job_name = {names}")
    assert asked.names[4:8] == ["freq_type", "freq_interval", "active_start_time", "schedule_description"]
    assert asked.rows[0][3:8] == [1, 4, 1, 43000, "30 4 * * *"]
    capture = f"N'cdc.{console.database}_capture'"
    assert console.must(f"EXEC msdb.dbo.sp_help_jobschedule {capture}").rows[0][4] == 64
    console.must(f"EXEC msdb.dbo.sp_stop_job {capture} EXEC msdb.dbo.sp_start_job {capture}")
    assert console.run("EXEC msdb.dbo.sp_start_job N'nope'").errors == [14262]


def _known_issues(console: Console) -> None:
    shipped = console.must(
        """
        SELECT name AS object_name
            ,SCHEMA_NAME(schema_id) AS schema_name
            ,type_desc
            ,is_ms_shipped
        FROM sys.objects
        WHERE is_ms_shipped= 1 AND SCHEMA_NAME(schema_id) = 'cdc'
        """
    )
    assert {row[1] for row in shipped.rows} == {"cdc"}
    assert {"HR_Department_CT", "lsn_time_mapping", "fn_cdc_get_net_changes_HR_Department"} <= {
        row[0] for row in shipped.rows
    }
    for definition in ("VARCHAR(10) collate Chinese_PRC_CI_AI", "NVARCHAR(10) collate Chinese_PRC_CI_AI"):
        console.must(f"CREATE TABLE T1(C1 INT PRIMARY KEY, C2 {definition})")
        console.must("INSERT T1 VALUES (1, N'编号') DROP TABLE T1")
    roles = console.must(
        """
        IF NOT EXISTS
        (
            SELECT * FROM sys.database_principals WHERE NAME = 'cdc'
        )
        BEGIN
            CREATE USER [cdc] WITHOUT LOGIN WITH DEFAULT_SCHEMA = [cdc];
        END
        EXEC sp_addrolemember 'db_owner', 'cdc';
        GO
        EXECUTE AS USER = 'cdc';
        SELECT is_srvrolemember('sysadmin'), is_member('db_owner');
        """.replace("        ", "")
    )
    assert roles.rows == [[0, 1]]


def _text_size(console: Console) -> None:
    outcome = console.must(
        "EXEC sp_configure 'show advanced options', 1;\nRECONFIGURE;\nGO\n"
        "EXEC sp_configure 'max text repl size', -1;\nGO\nRECONFIGURE;\nGO"
    )
    assert outcome.texts == [
        "Configuration option 'show advanced options' changed from 0 to 1."
        " Run the RECONFIGURE statement to install.",
        "Configuration option 'max text repl size (B)' changed from 65536 to -1."
        " Run the RECONFIGURE statement to install.",
    ]


def _after_a_restore(console: Console) -> None:
    [(owner,)] = console.source("SELECT current_user")
    console.must(
        f"ALTER AUTHORIZATION ON DATABASE::[{console.database}] TO [{owner}]\nEXEC sys.sp_cdc_enable_db"
    )


def test_changes_and_templates(adventure: Console) -> None:
    """The tables "Metadata" and "Query functions", the templates, and what monitoring asks of changes."""
    adventure.must(f"EXEC sys.sp_cdc_enable_db {ENABLE_EMPLOYEE} {ENABLE_DEPARTMENT} EXEC highwater.sync")
    _net_changes_between_times(adventure)
    adventure.must(
        "UPDATE HumanResources.Employee SET VacationHours = 5 WHERE BusinessEntityID = 1 EXEC highwater.sync"
    )
    _metadata(adventure)
    _all_changes(adventure)
    _endpoints(adventure)
    _times(adventure)
    _masks(adventure)
    _integration_services(adventure)
    _enumeration_templates(adventure)
    _transaction_templates(adventure)
    _wrapper_templates(adventure)
    _monitoring(adventure)
    _clean_up(adventure)


def _net_changes_between_times(console: Console) -> None:
    """fn_cdc_get_net_changes: as written it has no wait for capture, which stands here before @end_time."""
    net = console.must(
        """
        DECLARE @begin_time DATETIME, @end_time DATETIME, @begin_lsn BINARY(10), @end_lsn BINARY(10);
        SET @begin_time = GETDATE() -1;
        INSERT INTO HumanResources.Department (Name, GroupName) VALUES (N'MyDept', N'MyNewGroup');
        UPDATE HumanResources.Department
            SET GroupName = N'Resource Control' WHERE GroupName = N'Inventory Management';
        DELETE FROM HumanResources.Department WHERE Name = N'MyDept';
        EXEC highwater.sync;
        SET @end_time = GETDATE();
        SET @begin_lsn = sys.fn_cdc_map_time_to_lsn('smallest greater than or equal', @begin_time);
        SET @end_lsn = sys.fn_cdc_map_time_to_lsn('largest less than or equal', @end_time);
        IF @begin_lsn < sys.fn_cdc_get_min_lsn('HR_Department')
            SET @begin_lsn = sys.fn_cdc_get_min_lsn('HR_Department');
        SELECT * FROM cdc.fn_cdc_get_net_changes_HR_Department(@begin_lsn, @end_lsn, 'all');
        """
    )
    assert net.names == [
        "__$start_lsn",
        "__$operation",
        "__$update_mask",
        "DepartmentID",
        "Name",
        "GroupName",
    ]
    assert sorted((row[1], row[2], row[4], row[5]) for row in net.rows) == [
        (4, None, "Purchasing", "Resource Control"),
        (4, None, "Shipping", "Resource Control"),
    ]


def _metadata(console: Console) -> None:
    one = console.must(
        "EXEC sys.sp_cdc_help_change_data_capture"
        " @source_schema = N'HumanResources', @source_name = N'Employee'"
    )
    assert [row[2] for row in one.rows] == ["HumanResources_Employee"]
    everything = console.must("EXEC sys.sp_cdc_help_change_data_capture")
    assert len(everything.rows) == 2
    columns = console.must(
        "EXEC sys.sp_cdc_get_captured_columns @capture_instance = N'HumanResources_Employee'"
    )
    assert [row[3] for row in columns.rows] == ["BusinessEntityID", "JobTitle", "VacationHours"]
    history = console.must(
        """
        ALTER TABLE HumanResources.Employee ADD Test_Column int NULL;
        GO
        -- Pause 10 seconds to allow the event to be logged.
        WAITFOR DELAY '00:00:00';
        EXEC highwater.sync;
        GO
        EXEC sys.sp_cdc_get_ddl_history @capture_instance = N'HumanResources_Employee';
        """
    )
    [row] = history.rows
    assert (row[2], row[3]) == ("HumanResources_Employee", False)
    assert "Test_Column" in row[4]


def _all_changes(console: Console) -> None:
    department = console.must(
        """
        DECLARE @from_lsn BINARY(10), @to_lsn BINARY(10);
        SET @from_lsn = sys.fn_cdc_get_min_lsn('HR_Department');
        SET @to_lsn = sys.fn_cdc_get_max_lsn();
        SELECT * FROM cdc.fn_cdc_get_all_changes_HR_Department(@from_lsn, @to_lsn, N'all');
        """
    )
    assert [row[2] for row in department.rows] == [2, 4, 4, 1]
    high = console.must("SELECT sys.fn_cdc_get_max_lsn() AS max_lsn")
    assert high.types == {"max_lsn": "binary(10)"}
    assert high.value >= department.rows[-1][0]
    low = console.must("SELECT sys.fn_cdc_get_min_lsn('HumanResources_Employee') AS min_lsn;")
    assert "0x" + "0" * 20 < low.value <= high.value
    employee = console.must(
        """
        DECLARE @min_lsn BINARY(10), @max_lsn BINARY(10);
        SELECT @min_lsn = sys.fn_cdc_get_min_lsn('HumanResources_Employee');
        SELECT @max_lsn = sys.fn_cdc_get_max_lsn();
        SELECT * FROM cdc.fn_cdc_get_all_changes_HumanResources_Employee(@min_lsn, @max_lsn, 'all');
        """
    )
    assert [(row[2], row[-1]) for row in employee.rows] == [(4, 5)]


def _endpoints(console: Console) -> None:
    low = console.run(
        """
        DECLARE @from_lsn BINARY(10), @to_lsn BINARY(10), @save_to_lsn BINARY(10), @min_lsn BINARY(10);
        SET @save_to_lsn = 0x000000000000000000;
        SET @to_lsn = sys.fn_cdc_get_max_lsn();
        SET @from_lsn = sys.fn_cdc_increment_lsn(@save_to_lsn);
        SET @min_lsn = sys.fn_cdc_get_min_lsn('HumanResources_Employee');
        IF (@from_lsn < @min_lsn)
            RAISERROR('Low endpoint of the request interval is invalid.', 16, -1);
        ELSE
            SELECT * FROM cdc.fn_cdc_get_all_changes_HumanResources_Employee(@from_lsn, @to_lsn, 'all');
        """
    )
    assert [(line["number"], line["text"]) for line in low.of("error")] == [
        (50000, "Low endpoint of the request interval is invalid.")
    ]
    increment = console.must(
        """
        DECLARE @from_lsn BINARY(10), @to_lsn BINARY(10), @save_to_lsn BINARY(10);
        SET @save_to_lsn = (SELECT MIN(__$start_lsn) FROM cdc.HR_Department_CT);
        SET @from_lsn = sys.fn_cdc_increment_lsn(@save_to_lsn);
        SET @to_lsn = sys.fn_cdc_get_max_lsn();
        SELECT __$operation FROM cdc.fn_cdc_get_all_changes_HR_Department(@from_lsn, @to_lsn, 'all');
        """
    )
    assert increment.rows == [[4], [4], [1]]
    decrement = console.must(
        """
        DECLARE @from_lsn BINARY(10), @to_lsn BINARY(10);
        SET @from_lsn = sys.fn_cdc_get_min_lsn('HR_Department');
        SET @to_lsn = sys.fn_cdc_decrement_lsn((SELECT MAX(__$start_lsn) FROM cdc.HR_Department_CT));
        SELECT __$operation FROM cdc.fn_cdc_get_all_changes_HR_Department(@from_lsn, @to_lsn, 'all');
        """
    )
    assert decrement.rows == [[2], [4], [4]]


def _times(console: Console) -> None:
    last = console.must(
        """
        DECLARE @max_lsn BINARY(10);
        SELECT @max_lsn = MAX(__$start_lsn) FROM cdc.fn_cdc_get_all_changes_HR_Department(
            sys.fn_cdc_get_min_lsn('HR_Department'), sys.fn_cdc_get_max_lsn(), 'all');
        SELECT sys.fn_cdc_map_lsn_to_time(@max_lsn);
        SELECT tran_end_time FROM cdc.lsn_time_mapping WHERE start_lsn = @max_lsn;
        """
    )
    assert last.rows[0] == last.rows[1]
    assert last.rows[0][0] is not None
    day = console.run(
        """
        DECLARE @begin_time DATETIME, @end_time DATETIME, @begin_lsn BINARY(10), @end_lsn BINARY(10);
        SET @begin_time = '2007-01-01 12:00:00.000';
        SET @end_time = '2007-01-02 12:00:00.000';
        SELECT @begin_lsn = sys.fn_cdc_map_time_to_lsn('smallest greater than', @begin_time);
        SELECT @end_lsn = sys.fn_cdc_map_time_to_lsn('largest less than or equal', @end_time);
        SELECT IIF(@end_lsn IS NULL, 'before the first change', 'x') AS said;
        SELECT * FROM cdc.fn_cdc_get_net_changes_HR_Department(@begin_lsn, @end_lsn, 'all');
        """
    )
    assert (day.value, day.errors) == ("before the first change", [313])
    extraction = console.must(
        """
        DECLARE @extraction_time DATETIME, @lsn BINARY(10);
        SET @extraction_time = GETDATE();
        SELECT @lsn = sys.fn_cdc_map_time_to_lsn('smallest greater than or equal', @extraction_time);
        IF (@lsn IS NOT NULL) PRINT 'captured' ELSE PRINT 'not yet';
        SET @extraction_time = DATEADD(day, -1, GETDATE());
        SELECT @lsn = sys.fn_cdc_map_time_to_lsn('smallest greater than or equal', @extraction_time);
        IF (@lsn IS NOT NULL) PRINT 'captured' ELSE PRINT 'not yet';
        """
    )
    assert extraction.texts == ["not yet", "captured"]


def _masks(console: Console) -> None:
    ordinal = console.must(
        """
        DECLARE @from_lsn BINARY(10), @to_lsn BINARY(10), @VacationHoursOrdinal INT;
        SET @from_lsn = sys.fn_cdc_get_min_lsn('HumanResources_Employee');
        SET @to_lsn = sys.fn_cdc_get_max_lsn();
        SET @VacationHoursOrdinal = sys.fn_cdc_get_column_ordinal('HumanResources_Employee', 'VacationHours');
        SELECT sys.fn_cdc_is_bit_set(@VacationHoursOrdinal, __$update_mask) as 'VacationHours', *
        FROM cdc.fn_cdc_get_net_changes_HumanResources_Employee(@from_lsn, @to_lsn, 'all with mask');
        """
    )
    assert ordinal.names[0] == "VacationHours"
    assert [(row[0], row[2]) for row in ordinal.rows] == [(True, 4)]
    bit = console.must(
        """
        DECLARE @from_lsn BINARY(10), @to_lsn BINARY(10), @GroupNm_ordinal INT;
        SET @from_lsn = sys.fn_cdc_get_min_lsn('HR_Department');
        SET @to_lsn = sys.fn_cdc_get_max_lsn();
        SET @GroupNm_ordinal = sys.fn_cdc_get_column_ordinal('HR_Department', 'GroupName');
        SELECT sys.fn_cdc_is_bit_set(@GroupNm_ordinal, __$update_mask) as 'IsGroupNmUpdated', *
        FROM cdc.fn_cdc_get_all_changes_HR_Department(@from_lsn, @to_lsn, 'all')
        WHERE __$operation = 4;
        """
    )
    assert bit.names[0] == "IsGroupNmUpdated"
    assert [row[0] for row in bit.rows] == [True, True]


def _integration_services(console: Console) -> None:
    """cdc-source.md: the state's LSNs are text without 0x."""
    package = console.must(
        """
        DECLARE @CS nvarchar(30) = CONVERT(nvarchar(30), sys.fn_cdc_get_min_lsn('HR_Department'), 2),
                @CE nvarchar(30) = CONVERT(nvarchar(30), sys.fn_cdc_get_max_lsn(), 1),
                @start_lsn binary(10), @end_lsn binary(10);
        SET @start_lsn = sys.fn_cdc_increment_lsn(convert(binary(10), '0x' + @CS, 1));
        SET @end_lsn = convert(binary(10), @CE, 1);
        SELECT * FROM cdc.fn_cdc_get_net_changes_HR_Department(@start_lsn, @end_lsn, 'all');
        """
    )
    assert [row[1] for row in package.rows] == [4, 4]
    wrong = console.run(
        "SELECT * FROM cdc.fn_cdc_get_net_changes_HR_Department("
        "0x00000000000000000001, sys.fn_cdc_get_max_lsn(), 'all')"
    )
    assert wrong.errors == [313]


def _enumeration_templates(console: Console) -> None:
    valid_range = """
        DECLARE @from_lsn binary(10), @to_lsn binary(10);
        SET @from_lsn = sys.fn_cdc_get_min_lsn('HR_Department');
        SET @to_lsn = sys.fn_cdc_get_max_lsn();
    """
    everything = console.must(
        f"{valid_range} SELECT * FROM cdc.fn_cdc_get_all_changes_HR_Department(@from_lsn, @to_lsn, N'all')"
        " SELECT * FROM cdc.fn_cdc_get_net_changes_HR_Department(@from_lsn, @to_lsn, N'all')"
    )
    assert [len(result["rows"]) for result in everything.of("resultset")] == [4, 2]
    previous = console.must(
        f"""
        {valid_range}
        DECLARE @save_to_lsn binary(10) = @to_lsn;
        UPDATE HumanResources.Department SET GroupName = N'Quality' WHERE Name = N'Shipping';
        EXEC highwater.sync;
        SET @from_lsn = sys.fn_cdc_increment_lsn(@save_to_lsn);
        SET @to_lsn = sys.fn_cdc_get_max_lsn();
        SELECT __$operation, Name FROM cdc.fn_cdc_get_all_changes_HR_Department(@from_lsn, @to_lsn, N'all');
        """
    )
    assert previous.rows == [[4, "Shipping"]]
    now = console.must(
        """
        DECLARE @from_lsn binary(10), @to_lsn binary(10), @now datetime = GETDATE(), @waited int = 0;
        WHILE (SELECT MAX(tran_end_time) FROM cdc.lsn_time_mapping) < @now AND @waited < 3
        BEGIN
            EXEC highwater.sync;
            SET @waited += 1;
        END
        SET @from_lsn = sys.fn_cdc_get_min_lsn('HR_Department');
        SET @to_lsn = sys.fn_cdc_map_time_to_lsn('largest less than or equal', @now);
        SELECT COUNT(*) FROM cdc.fn_cdc_get_all_changes_HR_Department(@from_lsn, @to_lsn, N'all');
        """
    )
    assert now.value == 5
    caught = console.must(
        """
        DECLARE @from_lsn binary(10) = 0x00000000000000000001, @to_lsn binary(10) = sys.fn_cdc_get_max_lsn();
        BEGIN TRY
            SELECT * FROM cdc.fn_cdc_get_net_changes_HR_Department(@from_lsn, @to_lsn, N'all');
        END TRY
        BEGIN CATCH
            SELECT ERROR_NUMBER(), ERROR_SEVERITY(), ERROR_STATE(), ERROR_PROCEDURE(), ERROR_LINE();
        END CATCH
        """
    )
    assert caught.rows == [[313, 16, 3, None, 4]]
    masked = console.must(
        f"{valid_range}"
        " SELECT sys.fn_cdc_has_column_changed('HR_Department', 'GroupName', __$update_mask), Name"
        " FROM cdc.fn_cdc_get_net_changes_HR_Department(@from_lsn, @to_lsn, N'all with mask')"
        " WHERE __$operation = 4 ORDER BY Name"
    )
    assert masked.rows == [[True, "Purchasing"], [True, "Shipping"]]


def _transaction_templates(console: Console) -> None:
    stamped = console.must(
        """
        DECLARE @from_lsn binary(10) = sys.fn_cdc_get_min_lsn('HR_Department'), @to_lsn binary(10);
        SET @to_lsn = sys.fn_cdc_get_max_lsn();
        SELECT m.tran_end_time, q.*
        FROM cdc.fn_cdc_get_all_changes_HR_Department(@from_lsn, @to_lsn, N'all') AS q
        JOIN cdc.lsn_time_mapping AS m ON q.__$start_lsn = m.start_lsn;
        """
    )
    assert len(stamped.rows) == 5
    assert all(row[0] for row in stamped.rows)
    numeric = console.must(
        """
        CREATE FUNCTION dbo.fn_convertnumericlsntobinary (@numericlsn numeric(25, 0))
        RETURNS binary(10)
        AS
        BEGIN
            DECLARE @file bigint, @block bigint, @slot bigint;
            SET @file = CAST(@numericlsn / 1000000000000000 AS bigint);
            IF @file * CAST(1000000000000000 AS numeric(25, 0)) > @numericlsn SET @file = @file - 1;
            SET @numericlsn = @numericlsn - @file * CAST(1000000000000000 AS numeric(25, 0));
            SET @block = FLOOR(@numericlsn / 100000);
            SET @slot = @numericlsn - @block * CAST(100000 AS numeric(25, 0));
            RETURN CONVERT(binary(4), @file) + CONVERT(binary(4), @block) + CONVERT(binary(2), @slot);
        END
        GO
        SELECT dbo.fn_convertnumericlsntobinary(9118000003065000001) AS last_lsn;
        DECLARE @from_lsn binary(10) = sys.fn_cdc_get_min_lsn('HR_Department'),
                @to_lsn binary(10) = sys.fn_cdc_get_max_lsn(), @begin binary(10), @numeric numeric(25, 0);
        SELECT @begin = tran_begin_lsn FROM cdc.lsn_time_mapping
            WHERE start_lsn = (SELECT MAX(__$start_lsn) FROM cdc.HR_Department_CT);
        SET @numeric = CONVERT(bigint, SUBSTRING(@begin, 1, 4)) * CAST(1000000000000000 AS numeric(25, 0))
            + CONVERT(bigint, SUBSTRING(@begin, 5, 4)) * CAST(100000 AS numeric(25, 0))
            + CONVERT(int, SUBSTRING(@begin, 9, 2));
        SELECT q.__$operation, q.Name
        FROM cdc.fn_cdc_get_all_changes_HR_Department(@from_lsn, @to_lsn, N'all') q
        INNER JOIN cdc.lsn_time_mapping m ON q.__$start_lsn = m.start_lsn
        WHERE m.tran_begin_lsn = dbo.fn_convertnumericlsntobinary(@numeric);
        """.replace("        ", "")
    )
    assert numeric.rows == [["0x0000239E000077BA0001"], [4, "Shipping"]]


WRAPPERS = """
DECLARE @wrapper_functions TABLE (function_name SYSNAME, create_script NVARCHAR(MAX));
INSERT INTO @wrapper_functions EXEC sys.sp_cdc_generate_wrapper_function{0};
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
"""


def _wrapper_templates(console: Console) -> None:
    """Those of a schema's instances, and one with an update flag, made and asked."""
    made = console.must(
        f"{WRAPPERS.format('')}"
        " SELECT __CDC_OPERATION, Name FROM dbo.fn_all_changes_HR_Department(NULL, NULL, 'all')"
        " SELECT __CDC_OPERATION, VacationHours"
        " FROM fn_net_changes_HumanResources_Employee(NULL, NULL, 'all')"
    )
    assert made.rows == [
        ["I", "MyDept"], ["UN", "Purchasing"], ["UN", "Shipping"], ["D", "MyDept"], ["UN", "Shipping"],
        ["UN", 5],
    ]  # fmt: skip
    flagged = console.must(
        WRAPPERS.format(
            " @capture_instance = N'HR_Department', @update_flag_list = N'Name, GroupName',"
            " @column_list = N'Name, GroupName'"
        )
        + "SELECT Name, Name_uflag, GroupName_uflag"
        " FROM fn_net_changes_HR_Department(NULL, NULL, 'all with mask')"
        " ORDER BY Name"
    )
    assert flagged.rows == [["Purchasing", False, True], ["Shipping", False, True]]


def _monitoring(console: Console) -> None:
    newest = console.must(
        """
        SELECT session_id, start_time, end_time, duration, scan_phase, error_count, start_lsn, current_lsn,
            end_lsn, tran_count, last_commit_lsn, last_commit_time, log_record_count, schema_change_count,
            command_count, first_begin_cdc_lsn, last_commit_cdc_lsn, last_commit_cdc_time, latency,
            empty_scan_count, failed_sessions_count
        FROM sys.dm_cdc_log_scan_sessions
        WHERE session_id = (SELECT MAX(b.session_id) FROM sys.dm_cdc_log_scan_sessions AS b);
        """
    )
    assert len(newest.names) == 21
    assert len(newest.rows) == 1
    empty = console.must("SELECT * FROM sys.dm_cdc_log_scan_sessions WHERE empty_scan_count <> 0")
    assert all(row[19] != 0 for row in empty.rows)
    latency = console.must("SELECT latency FROM sys.dm_cdc_log_scan_sessions WHERE session_id = 0")
    assert latency.value >= 0
    throughput = console.must(
        "SELECT command_count / NULLIF(duration, 0) AS [Throughput]"
        " FROM sys.dm_cdc_log_scan_sessions WHERE session_id = 0"
    )
    assert throughput.types == {"Throughput": "bigint"}
    assert console.must("SELECT COUNT(*) FROM sys.dm_cdc_errors").value == 0


def _clean_up(console: Console) -> None:
    cleaned = console.must(
        """
        DECLARE @retcode int, @flag bit, @LSN binary(10) = sys.fn_cdc_get_max_lsn();
        SET @flag = 0;
        EXEC @retcode = sys.sp_cdc_cleanup_change_table @capture_instance = 'HR_Department',
            @low_water_mark = @LSN, @threshold = 1, @fCleanupFailed = @flag OUTPUT;
        SELECT IIF(@flag > 0, 'CLEANUP FAILURE', 'CLEANUP SUCCESS');
        """
    )
    assert cleaned.value == "CLEANUP SUCCESS"
    # Rows of the low watermark's own transaction stay: the two of the last update.
    assert console.must("SELECT COUNT(*) FROM cdc.HR_Department_CT").value in (0, 2)
