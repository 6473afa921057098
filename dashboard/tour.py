"""The tour: nine lessons on a small table of its own, each with scripts in T-SQL, and checks of them. Pure.

Nothing is remembered of who took it: what the change table and the metadata show says how far it has come,
so it goes on in another tab, or tomorrow, where it was left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dashboard.tour_facts import AFTER, DELETE, FIRST, INSERT, SCHEMA, SECOND, TABLE, Facts

SLOW = {"maxtrans": 20, "maxscans": 1, "pollinginterval": 2}
"""Parameters by which a burst is seen to wait: ten transactions a second."""
BURST = 120


@dataclass(frozen=True, slots=True)
class Part:
    """One script of a lesson. ``action`` is the button's text, ``check`` what has to be seen, in words."""

    action: str
    script: str
    check: str
    is_done: Callable[[Facts], bool]


@dataclass(frozen=True, slots=True)
class Lesson:
    """A step of the tour. ``look``: the page that shows the same, and what to look at there."""

    title: str
    text: str
    parts: tuple[Part, ...]
    look: tuple[str, str]


_BOUNDS = f"""DECLARE @low binary(10) = sys.fn_cdc_get_min_lsn(N'{FIRST}');
DECLARE @high binary(10) = sys.fn_cdc_get_max_lsn();
"""
_RESTART = """EXEC sys.sp_cdc_stop_job @job_type = N'capture';
WAITFOR DELAY '00:00:03';
EXEC sys.sp_cdc_start_job @job_type = N'capture';
"""

LESSONS: tuple[Lesson, ...] = (
    Lesson(
        "Enable a table",
        "Change data capture is enabled table by table. Nothing is added to the table itself: the capture "
        "job reads the transaction log. What it finds goes into a change table, and functions to ask it are "
        "made. The first table of a database also gets it its two jobs, capture and cleanup.",
        (
            Part(
                "Create and enable the table",
                f"""IF OBJECT_ID(N'{SCHEMA}.{TABLE}') IS NULL
    CREATE TABLE {SCHEMA}.{TABLE} (
        AccountID int NOT NULL PRIMARY KEY,
        Owner nvarchar(40) NOT NULL,
        Balance decimal(12, 2) NOT NULL
    );
IF NOT EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_cdc_enabled = 1)
    EXEC sys.sp_cdc_enable_db;
EXEC sys.sp_cdc_enable_table
    @source_schema = N'{SCHEMA}', @source_name = N'{TABLE}', @role_name = NULL, @supports_net_changes = 1;
EXEC highwater.sync;
EXEC sys.sp_cdc_help_change_data_capture @source_schema = N'{SCHEMA}', @source_name = N'{TABLE}';
""",
                f"The capture instance {FIRST} has a validity interval.",
                lambda known: known.is_established(FIRST),
            ),
        ),
        ("tables", "the new lane of the validity timeline"),
    ),
    Lesson(
        "First rows",
        "An insert becomes one row of the change table: operation 2. All rows of a transaction have the LSN "
        "of its commit, `__$start_lsn`. `highwater.sync` waits until what is committed is captured; in "
        "production nobody waits, consumers ask up to `fn_cdc_get_max_lsn`.",
        (
            Part(
                "Insert three accounts",
                f"""INSERT INTO {SCHEMA}.{TABLE} (AccountID, Owner, Balance)
VALUES (1, N'Ada', 100), (2, N'Bela', 250), (3, N'Chris', 75);
EXEC highwater.sync;
{_BOUNDS}SELECT * FROM cdc.fn_cdc_get_all_changes_{FIRST}(@low, @high, N'all');
""",
                "The inserts of accounts 1, 2 and 3 are captured.",
                lambda known: all(known.has(INSERT, account) for account in (1, 2, 3)),
            ),
        ),
        ("changes", "the three inserts, newest first"),
    ),
    Lesson(
        "Before, after and mask",
        "An update has its values before (3) and after (4), and `__$update_mask` has a bit for each captured "
        "column: here only that of Balance is set. A consumer need not compare values to know what changed.",
        (
            Part(
                "Update one column",
                f"""UPDATE {SCHEMA}.{TABLE} SET Balance = Balance + 20 WHERE AccountID = 1;
EXEC highwater.sync;
{_BOUNDS}SELECT __$operation, AccountID, Owner, Balance, __$update_mask,
    sys.fn_cdc_has_column_changed(N'{FIRST}', N'Balance', __$update_mask) AS balance_changed,
    sys.fn_cdc_has_column_changed(N'{FIRST}', N'Owner', __$update_mask) AS owner_changed
FROM cdc.fn_cdc_get_all_changes_{FIRST}(@low, @high, N'all update old')
WHERE __$operation IN (3, 4);
""",
                "An update of account 1 is captured.",
                lambda known: known.has(AFTER, 1),
            ),
        ),
        ("changes", "old → new in one row, and the mask in the drawer"),
    ),
    Lesson(
        "All changes, net changes",
        "All changes tell the whole story. Net changes tell the outcome: one row for each key, whatever "
        "happened in between; a row that came and went is not there at all. Loading a warehouse needs the "
        "second, auditing the first.",
        (
            Part(
                "Change one account three times, delete another",
                f"""INSERT INTO {SCHEMA}.{TABLE} VALUES (4, N'Dana', 10);
UPDATE {SCHEMA}.{TABLE} SET Balance = 20 WHERE AccountID = 4;
UPDATE {SCHEMA}.{TABLE} SET Balance = 30 WHERE AccountID = 4;
DELETE FROM {SCHEMA}.{TABLE} WHERE AccountID = 3;
EXEC highwater.sync;
{_BOUNDS}SELECT __$operation, AccountID, Owner, Balance
FROM cdc.fn_cdc_get_all_changes_{FIRST}(@low, @high, N'all');
SELECT __$operation, AccountID, Owner, Balance
FROM cdc.fn_cdc_get_net_changes_{FIRST}(@low, @high, N'all');
""",
                "The delete of account 3 is captured.",
                lambda known: known.has(DELETE, 3),
            ),
        ),
        ("changes", "All against Net over the same range"),
    ),
    Lesson(
        "Transactions keep their order",
        "Two rows change in one transaction: both get the same `__$start_lsn`, and `__$command_id` orders "
        "them within it. What is rolled back never appears.",
        (
            Part(
                "Transfer between two accounts, and roll one transfer back",
                f"""BEGIN TRAN;
UPDATE {SCHEMA}.{TABLE} SET Balance = Balance - 50 WHERE AccountID = 2;
UPDATE {SCHEMA}.{TABLE} SET Balance = Balance + 50 WHERE AccountID = 1;
COMMIT;
BEGIN TRAN;
UPDATE {SCHEMA}.{TABLE} SET Balance = 0 WHERE AccountID = 1;
ROLLBACK;
EXEC highwater.sync;
{_BOUNDS}SELECT TOP (2) __$start_lsn, __$command_id, __$operation, AccountID, Balance
FROM cdc.{FIRST}_CT WHERE __$operation = 4 ORDER BY __$start_lsn DESC, __$command_id DESC;
""",
                "Two updates with one commit LSN are captured.",
                lambda known: known.has_transfer,
            ),
        ),
        ("changes", "the transaction of a change, in its drawer"),
    ),
    Lesson(
        "Stop capture: nothing is lost",
        "While the capture job stands, the source goes on, keeps its log, and the validity interval ends "
        "where capture stopped: newer changes cannot be asked for yet. Started again, the job reads on from "
        "there. The price is log that the source must keep: watch it.",
        (
            Part(
                "Stop capture, then insert a row",
                f"""EXEC sys.sp_cdc_stop_job @job_type = N'capture';
INSERT INTO {SCHEMA}.{TABLE} VALUES (6, N'Farah', 60);
""",
                "The capture job has stopped.",
                lambda known: known.has_transfer and known.is_stopped,
            ),
            Part(
                "Start it again",
                f"""EXEC sys.sp_cdc_start_job @job_type = N'capture';
EXEC highwater.sync;
{_BOUNDS}SELECT * FROM cdc.fn_cdc_get_all_changes_{FIRST}(@low, @high, N'all') WHERE AccountID = 6;
""",
                "The row that was inserted meanwhile is captured.",
                lambda known: known.has(INSERT, 6),
            ),
        ),
        ("capture", "the job's card, and latency while it catches up"),
    ),
    Lesson(
        "A burst against the ceiling",
        "The capture job takes at most `maxtrans` × `maxscans` transactions, then rests for "
        f"`pollinginterval` seconds. With {SLOW['maxtrans']} × {SLOW['maxscans']} each "
        f"{SLOW['pollinginterval']} s, ten transactions a second is the ceiling: a burst waits in the log, "
        "and latency grows until it is worked off. Changed parameters count from the job's next start.",
        (
            Part(
                "Lower the ceiling",
                "EXEC sys.sp_cdc_change_job @job_type = N'capture',"
                + ", ".join(f" @{name} = {value}" for name, value in SLOW.items())
                + f";\n{_RESTART}",
                "Capture runs with these parameters.",
                lambda known: known.has(INSERT, 6) and known.runs_with(SLOW),
            ),
            Part(
                f"{BURST} transactions at once",
                f"""DECLARE @n int = 0;
WHILE @n < {BURST}
BEGIN
    UPDATE {SCHEMA}.{TABLE} SET Balance = Balance + 1 WHERE AccountID = 1;
    SET @n += 1;
END;
INSERT INTO {SCHEMA}.{TABLE} VALUES (7, N'Gus, after the burst', 0);
""",
                "The last row of the burst is captured.",
                lambda known: known.has(INSERT, 7),
            ),
            Part(
                "Back to the defaults",
                "EXEC sys.sp_cdc_change_job @job_type = N'capture', @maxtrans = 500, @maxscans = 10,"
                f" @pollinginterval = 5;\n{_RESTART}",
                "Capture runs with the defaults again.",
                lambda known: (
                    known.has(INSERT, 7)
                    and known.runs_with({"maxtrans": 500, "maxscans": 10, "pollinginterval": 5})
                ),
            ),
        ),
        ("capture", "throughput under its ceiling, latency above"),
    ),
    Lesson(
        "Retention, and the query that fails",
        "Cleanup moves the low endpoint of the validity interval and deletes what is below. Who asks for an "
        "older range gets an error instead of too few rows: error 313, the original's way to say that the "
        "range is not valid. The last statement here is meant to fail.",
        (
            Part(
                "Clean up, then ask for what is gone",
                f"""DECLARE @old binary(10) = sys.fn_cdc_get_min_lsn(N'{FIRST}'), @mark binary(10);
INSERT INTO {SCHEMA}.{TABLE} VALUES (8, N'Hana, kept', 80);
EXEC highwater.sync;
SELECT @mark = __$start_lsn FROM cdc.{FIRST}_CT WHERE AccountID = 8 AND __$operation = 2;
EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'{FIRST}', @low_water_mark = @mark;
SELECT @old AS low_endpoint_before, sys.fn_cdc_get_min_lsn(N'{FIRST}') AS low_endpoint_now;
SELECT * FROM cdc.fn_cdc_get_all_changes_{FIRST}(@old, @mark, N'all');
""",
                "The first inserts are gone, the newest is kept.",
                lambda known: known.is_cleaned_up,
            ),
        ),
        ("tables", "the lane that begins later now"),
    ),
    Lesson(
        "DDL and the second instance",
        "A capture instance keeps the columns that it was enabled with: a new column is not in it, and "
        "nothing breaks. For the new shape a second instance is made beside the first; consumers change "
        "over, then the first is dropped.",
        (
            Part(
                "Add a column, enable a second instance",
                f"""ALTER TABLE {SCHEMA}.{TABLE} ADD City nvarchar(40) NULL;
EXEC sys.sp_cdc_enable_table @source_schema = N'{SCHEMA}', @source_name = N'{TABLE}',
    @capture_instance = N'{SECOND}', @role_name = NULL, @supports_net_changes = 1;
EXEC highwater.sync;
EXEC sys.sp_cdc_get_ddl_history @capture_instance = N'{FIRST}';
""",
                f"The capture instance {SECOND} has a validity interval.",
                lambda known: known.is_established(SECOND),
            ),
            Part(
                "Write the new column",
                f"""UPDATE {SCHEMA}.{TABLE} SET City = N'Oslo', Balance = Balance + 1 WHERE AccountID = 2;
EXEC highwater.sync;
SELECT TOP (1) * FROM cdc.{FIRST}_CT WHERE __$operation = 4 ORDER BY __$start_lsn DESC;
SELECT TOP (1) * FROM cdc.{SECOND}_CT WHERE __$operation = 4 ORDER BY __$start_lsn DESC;
""",
                "The second instance has the new column's value.",
                lambda known: known.has_city,
            ),
        ),
        ("schema", "the DDL, and the wizard that changes over"),
    ),
)

RESET = f"""IF EXISTS (SELECT * FROM cdc.change_tables WHERE capture_instance IN (N'{FIRST}', N'{SECOND}'))
    EXEC sys.sp_cdc_disable_table
        @source_schema = N'{SCHEMA}', @source_name = N'{TABLE}', @capture_instance = N'all';
DROP TABLE IF EXISTS {SCHEMA}.{TABLE};
IF EXISTS (SELECT * FROM msdb.dbo.cdc_jobs AS jobs JOIN sys.databases AS databases
           ON jobs.database_id = databases.database_id
           WHERE databases.name = DB_NAME() AND jobs.job_type = N'capture')
    EXEC sys.sp_cdc_change_job @job_type = N'capture', @maxtrans = 500, @maxscans = 10, @pollinginterval = 5;
"""
"""Takes back what the tour made: its table and instances, the parameters of the capture job."""


@dataclass(frozen=True, slots=True)
class Place:
    """The first part that is not done: its lesson, from 0 (their number at the end), and its number there."""

    lesson: int
    part: int


def place(known: Facts) -> Place:
    """How far the tour has come. A part is done when it, or any after it, shows: cleanup takes old rows."""
    parts = [(number, n, part) for number, each in enumerate(LESSONS) for n, part in enumerate(each.parts)]
    done = [index for index, (_, _, part) in enumerate(parts) if part.is_done(known)]
    reached = max(done, default=-1) + 1
    if reached == len(parts):
        return Place(len(LESSONS), 0)
    return Place(*parts[reached][:2])
