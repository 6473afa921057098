"""The data collector on a started home: the documentation's script, the command, what was collected."""

from __future__ import annotations

import json

from tests.integration.conftest import Source
from tests.tsql.consoles import Console

EXAMPLE = """
USE msdb;

DECLARE @schedule_uid uniqueidentifier;

-- Collect and upload data every 5 minutes
SELECT @schedule_uid = (
SELECT schedule_uid from sysschedules_localserver_view
WHERE name = N'CollectorSchedule_Every_5min')

DECLARE @collection_set_id int;

EXEC dbo.sp_syscollector_create_collection_set
@name = N' CDC Performance Data Collector',
@schedule_uid = @schedule_uid,
@collection_mode = 0,
@days_until_expiration = 30,
@description = N'This collection set collects CDC metadata',
@collection_set_id = @collection_set_id output;

-- Create a collection item using statistics from the change data capture dynamic management view.
DECLARE @parameters xml;
DECLARE @collection_item_id int;

SELECT @parameters = CONVERT(xml,
    N'<TSQLQueryCollector>
        <Query>
          <Value>SELECT * FROM sys.dm_cdc_log_scan_sessions</Value>
          <OutputTable>cdc_log_scan_data</OutputTable>
        </Query>
      </TSQLQueryCollector>');

EXEC dbo.sp_syscollector_create_collection_item
@collection_set_id = @collection_set_id,
@collector_type_uid = N'302E93D1-3424-4BE7-AA8E-84813ECF2419',
@name = ' CDC Performance Data Collector',
@frequency = 5,
@parameters = @parameters,
@collection_item_id = @collection_item_id output;

SELECT s.name, s.collection_mode, s.days_until_expiration, s.is_running, v.name AS schedule, i.frequency,
    @collection_set_id - s.collection_set_id AS same_set, i.collection_item_id - @collection_item_id AS same
FROM syscollector_collection_sets AS s
JOIN dbo.syscollector_collection_items AS i ON i.collection_set_id = s.collection_set_id
JOIN msdb.dbo.sysschedules_localserver_view AS v ON v.schedule_uid = s.schedule_uid
WHERE s.is_system = 0
"""
NAME = "CDC Performance Data Collector"


def test_the_script_of_the_documentation_and_what_it_collects(source: Source) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    source.home.must("enable", "-d", source.name)
    source.enable("public.t")
    source.sql("INSERT INTO t VALUES (1), (2)")
    source.sync()
    console = Console(source.home, source.name, source.dsn)
    try:
        made = console.must(EXAMPLE)
        assert made.rows == [[NAME, 0, 30, False, "CollectorSchedule_Every_5min", 5, 0, 0]]
        _errors(console)
        console.must(f"EXEC msdb.dbo.sp_syscollector_start_collection_set @name = N'{NAME}'")
        console.must(f"USE msdb EXEC dbo.sp_syscollector_upload_collection_set @name = N'{NAME}'")
        _snapshots(console)
        _command(source)
        console.must(
            f"EXEC msdb.dbo.sp_syscollector_update_collection_set @name = N'{NAME}',"
            " @schedule_name = 'CollectorSchedule_Every_6h', @days_until_expiration = 7"
            f" EXEC msdb.dbo.sp_syscollector_stop_collection_set @name = N'{NAME}'"
        )
        shown = source.home.must("collector", "list")
        assert f"{NAME}: stopped; CollectorSchedule_Every_6h, kept 7 days" in shown
    finally:
        source.home.call("collector", "stop", NAME)
        source.home.must("collector", "drop", NAME)


def _errors(console: Console) -> None:
    def errors(call: str) -> list[int]:
        return console.run(f"DECLARE @n int EXEC msdb.dbo.sp_syscollector_{call}").errors

    create = "create_collection_set @collection_set_id = @n OUTPUT, @name ="
    assert errors(f"{create} '{NAME}', @schedule_name = 'CollectorSchedule_Every_5min'") == [14261]
    assert errors(f"{create} 'x'") == [14683]
    assert errors(f"{create} '  ', @schedule_name = 'CollectorSchedule_Every_5min'") == [14607]
    assert errors(f"{create} 'x', @schedule_name = 'CollectorSchedule_Every_7min'") == [14262]
    assert errors(f"{create} 'x', @collection_mode = 2") == [14266]
    assert errors("start_collection_set") == [14624]
    assert errors("start_collection_set @name = 'nope'") == [14262]
    assert errors("delete_collection_set 1") == [14696]
    assert errors("run_collection_set 1") == [14695]
    assert console.run("SELECT * FROM custom_snapshots.nothing").errors == [208]
    assert console.run("DELETE custom_snapshots.cdc_log_scan_data").errors == [229]


def _snapshots(console: Console) -> None:
    """The standard queries of the documentation, over what was kept."""
    mine = f"FROM custom_snapshots.cdc_log_scan_data WHERE database_name = '{console.database}'"
    found = console.must(f"SELECT command_count, latency {mine} AND session_id = 0 ORDER BY snapshot_id DESC")
    assert found.rows[0][0] == 2
    newest = console.must(f"SELECT COUNT(DISTINCT snapshot_id), MAX(snapshot_time) {mine}")
    [[snapshots, time]] = newest.rows
    assert snapshots >= 1
    assert time.startswith("20")
    star = console.must("SELECT * FROM Custom_Snapshots.CDC_Log_Scan_Data")
    assert star.names[:2] == ["session_id", "start_time"]
    assert {"database_name", "snapshot_time", "snapshot_id", "engine_start"} <= set(star.names)


def _command(source: Source) -> None:
    home = source.home
    run = json.loads(home.must("collector", "collect-now", "--json"))
    assert (run["outcome"], run["collection_set_id"], run["interval_seconds"]) == ("succeeded", 1, 300)
    listed = [json.loads(line) for line in home.must("collector", "list", "--json").splitlines()]
    assert [each["name"] for each in listed] == ["Change Data Capture", NAME]
    newest = json.loads(home.must("collector", "runs", "1", "--limit", "1", "--json"))
    assert newest["snapshot_id"] >= run["snapshot_id"]
    points = home.must("collector", "history", "-d", source.name, "--format", "json", "--bucket", "86400")
    told = [json.loads(line) for line in points.splitlines()]
    assert sum(point["command_count"] for point in told) == 2
    assert "kind" in home.must("collector", "gaps", "-d", source.name)
    wrong = home.call("collector", "change", "1", "--interval", "7")
    assert (wrong.returncode, "50091" in wrong.stderr) == (1, True)
    assert home.call("collector", "start", "nope").returncode == 1
