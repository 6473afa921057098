# ruff: noqa: N818 - the names say what is wrong, as the original's texts do
"""Errors with the original's numbers (reference/errors.md): what callers catch and what users read.

Numbers from 50000 on are ours, where the original has no such error. Severity 10 is a message about
something that is no failure: the command line prints it and goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class CdcError(Exception):
    """An error as the original reports it: number, severity, state and text.

    ``str()`` is the text, made of ``shape`` and the values given; ``line()`` the form
    ``Msg N, Level L, State S: text``.
    """

    number: int = 50000
    severity: int = 16
    state: int = 1
    shape: ClassVar[str] = "{0}"

    def __init__(self, *values: object) -> None:
        super().__init__(*values)
        self.text = self.shape.format(*values)

    def __str__(self) -> str:
        return self.text

    def line(self) -> str:
        """The one-line form that the command line prints on stderr."""
        return f"Msg {self.number}, Level {self.severity}, State {self.state}: {self}"


# Databases


class UnknownDatabase(CdcError):
    """No source of that name is registered, or none was named and there is more than one."""

    number = 911
    shape = "Database '{0}' does not exist. {1}"


class CallerNotSysadmin(CdcError):
    """The principal may not enable or disable databases: it is no superuser of the source."""

    number = 22902
    shape = "Caller is not authorized to initiate the requested action. {0} privileges are required."


class CallerNotOwner(CdcError):
    """The principal may not call procedures that change capture: it does not own the source's database."""

    number = 22904
    shape = "Caller is not authorized to initiate the requested action. DBO privileges are required."


class DatabaseNotEnabled(CdcError):
    """The call needs a database that is enabled for change data capture."""

    number = 22901
    shape = "Database '{0}' is not enabled for change data capture. Enable it first: is_cdc_enabled is 0."


class DatabaseAlreadyEnabled(CdcError):
    """enable_db on a database that is enabled: nothing is done."""

    number, severity = 22905, 10
    shape = "Database '{0}' is already enabled for change data capture."


class CdcSchemaExists(CdcError):
    """The source has a schema ``cdc`` that is not ours."""

    number = 22906
    shape = (
        "Database '{0}' cannot be enabled: it already has a user or schema named 'cdc'. "
        "Drop or rename it; where it is Highwater's, in a copy of an enabled database or after an enabling "
        "that was cut short, disable the database first: highwater disable -d {1}"
    )


class SystemDatabase(CdcError):
    """enable_db on a database that others are copied from: the source's template databases."""

    number = 22989
    shape = "Database '{0}' is a system database: change data capture cannot be enabled there."


class ObjectsNotCreated(CdcError):
    """The source refused the objects that enable_db makes."""

    number = 22908
    shape = "Could not create the change data capture objects in database '{0}': {1}"


class ObjectsNotDropped(CdcError):
    """The source refused to drop what enable_db made."""

    number = 22913
    shape = "Could not drop the change data capture objects in database '{0}': {1}"


# Enabling a table


class ParameterEmpty(CdcError):
    """A parameter that must be given is None or empty."""

    number = 22963
    shape = "Parameter '{0}' must not be null or empty."


class TableMissing(CdcError):
    """The source table does not exist."""

    number = 22931
    shape = "Source table '{0}.{1}' does not exist in this database."


class TableInCdcSchema(CdcError):
    """Tables of schema ``cdc`` cannot be captured."""

    number = 22974
    shape = "Table '{0}.{1}' is in schema 'cdc', whose tables cannot be captured."


class ReservedColumnName(CdcError):
    """A captured column has the name of a metadata column of change tables."""

    number = 22975
    shape = (
        "Table '{0}.{1}' has a column with the reserved name '{2}'. Give a captured column list without it."
    )


class RoleNameEmpty(CdcError):
    """@role_name is empty; None means no gating role."""

    number = 22907
    shape = "Parameter '@role_name' must not be empty. Use NULL for no gating role."


class RoleNameInvalid(CdcError):
    """@role_name is not a valid name of a role."""

    number = 22938
    shape = "'{0}' is not a valid role name."


class RoleNotCreated(CdcError):
    """The gating role does not exist and the source refused to create it."""

    number = 22944
    shape = "Could not create role '{0}' for change table '{1}': {2}"


class CaptureInstanceExists(CdcError):
    """The database has a capture instance of that name."""

    number = 22926
    shape = "Capture instance name '{0}' already exists in this database. Give another one."


class CaptureInstanceNameTooLong(CdcError):
    """The capture instance name has more than 100 characters."""

    number = 22927
    shape = "Capture instance name '{0}' is longer than 100 characters."


class CaptureInstanceNameInvalid(CdcError):
    """The capture instance name is no valid identifier."""

    number = 22932
    shape = "Capture instance name '{0}' is not a valid identifier."


class TooManyInstances(CdcError):
    """The table has two capture instances."""

    number = 22962
    shape = "Table '{0}.{1}' already has two capture instances. Disable one of them first."


class IndexMissing(CdcError):
    """@index_name is no index of the table."""

    number = 22928
    shape = "'{0}' is not an index of table '{1}.{2}'."


class IndexNotUnique(CdcError):
    """@index_name is neither unique nor the primary key."""

    number = 22929
    shape = "Index '{0}' of table '{1}.{2}' is neither unique nor the primary key: it does not identify rows."


class IndexNullable(CdcError):
    """A column of @index_name may be NULL."""

    number = 22838
    shape = "Index '{0}' of table '{1}.{2}' has nullable columns: {3}. All columns must be NOT NULL."


class IndexDisabled(CdcError):
    """@index_name is not usable now."""

    number = 22980
    shape = "Index '{0}' of table '{1}.{2}' is disabled (the source says it is not valid)."


class TooManyIndexColumns(CdcError):
    """The identifying index has more than 14 columns and net changes are asked for."""

    number = 22865
    shape = "Index '{0}' has {1} columns; net changes allow at most 14."


class NoRowIdentifier(CdcError):
    """Net changes are asked for, and there is neither a primary key nor an index name."""

    number = 22939
    shape = (
        "Net changes need a primary key or @index_name; table '{0}.{1}' has neither. Use "
        "supports_net_changes = 0."
    )


class IdentifierNotCaptured(CdcError):
    """The captured column list lacks columns that identify rows."""

    number = 22943
    shape = "The captured column list lacks columns that identify rows: {0}. Add them."


class ColumnMissing(CdcError):
    """The captured column list names a column that the table does not have."""

    number = 22930
    shape = "Column '{0}' of the captured column list is not in table '{1}.{2}'."


class ColumnListUnmappable(CdcError):
    """The captured column list cannot be read: an empty name, a name twice, or text after a quoted name."""

    number = 22942
    shape = "The captured column list cannot be mapped to columns of table '{0}.{1}': {2}."


class QuotedNameNotTerminated(CdcError):
    """A name in the captured column list begins with a quote or bracket that is never closed."""

    number = 22965
    shape = "The captured column list has a quoted name that is not terminated: {0}"


class TooManyColumns(CdcError):
    """More columns than the update mask of 128 bytes has bits."""

    number = 22925
    shape = "{0} columns are too many to capture: at most {1}."


class FilegroupInvalid(CdcError):
    """The source has no tablespace of that name (filegroup_name)."""

    number = 22973
    shape = (
        "Filegroup '{0}' is not valid: the source has no tablespace of that name. Leave @filegroup_name out, "
        "or give PRIMARY: change tables lie in the lake."
    )


class NotABit(CdcError):
    """An option that is 0 or 1 has another value."""

    number = 22844
    shape = "Option '{0}' must be 0 or 1."


class SwitchIgnored(CdcError):
    """@allow_partition_switch = 0 on a table that is not partitioned: noted, not a failure."""

    number, severity = 22857, 10
    shape = "@allow_partition_switch = 0 is ignored: table '{0}.{1}' is not partitioned."


class SwitchUntracked(CdcError):
    """The table is partitioned: noted, not a failure."""

    number, severity = 22855, 10
    shape = (
        "Table '{0}.{1}' is partitioned: rows that come or go with a whole partition (ATTACH and DETACH "
        "PARTITION) are not captured."
    )


class SwitchBlocked(CdcError):
    """The table is partitioned and @allow_partition_switch is 0: noted, not a failure."""

    number, severity = 22856, 10
    shape = (
        "Table '{0}.{1}' is partitioned and @allow_partition_switch is 0: from now on ATTACH and DETACH "
        "PARTITION of it, and DROP of a partition, are refused."
    )


class SwitchNotBlocked(CdcError):
    """@allow_partition_switch is 0, and the event triggers that would refuse are not there: no failure."""

    number, severity = 22856, 10
    shape = (
        "Table '{0}.{1}' is partitioned and @allow_partition_switch is 0, but ATTACH and DETACH PARTITION of "
        "it are not refused before a superuser creates Highwater's event triggers: highwater status has the "
        "statements. Until then rows that come or go with a partition are not captured."
    )


class TableNotMarked(CdcError):
    """The source could not be told to log the table: command, error number and text of the source follow."""

    number = 22832
    shape = "Could not mark table {0} as enabled: command '{1}' failed with error {2}: '{3}'."


# Disabling a table


class InstanceNotOfTable(CdcError):
    """The capture instance is not one of the table's."""

    number = 22960
    shape = "Capture instance '{0}' is not enabled for table '{1}.{2}'."


class TableNotTracked(CdcError):
    """The table has no capture instance."""

    number = 22985
    shape = "Table '{0}.{1}' is not enabled for change data capture: is_tracked_by_cdc is 0."


class TableNotUnmarked(CdcError):
    """The source could not be told to stop logging the table: command, error number and text follow."""

    number = 22833
    shape = "Could not mark table {0} as not enabled: command '{1}' failed with error {2}: '{3}'."


# Metadata


class SchemaWithoutName(CdcError):
    """help_change_data_capture got one of schema and table name without the other."""

    number = 22972
    shape = "Give both @source_schema and @source_name, or neither."


class ObjectDenied(CdcError):
    """A metadata procedure was asked of a capture instance that is unknown or not the caller's to read."""

    number = 22981
    shape = "The object does not exist, or access is denied."


class LowWatermarkNotMapped(CdcError):
    """@low_water_mark is no commit LSN of cdc.lsn_time_mapping."""

    number = 22964
    shape = "LSN {0} is not the start_lsn of a row of cdc.lsn_time_mapping."


class LowWatermarkOutsideTimeline(CdcError):
    """@low_water_mark is below the instance's low endpoint, which never goes back."""

    number = 22957
    shape = "LSN {0} is not within the timeline [{2}, {3}] of capture instance '{1}'."


class ObsoleteRowsLeft(CdcError):
    """The low endpoint has moved, but rows below it are still in the change table."""

    number, severity = 22852, 10
    shape = (
        "Could not delete all obsolete rows of the change table of capture instance '{0}': {1} "
        "Its low endpoint has moved; clean it up again without a low watermark to go on."
    )


class ObsoleteMappingRowsLeft(CdcError):
    """Low endpoints have moved, but rows below them are still in cdc.lsn_time_mapping."""

    number, severity = 22853, 10
    shape = "Could not delete all obsolete rows of cdc.lsn_time_mapping: {0} The next cleanup goes on."


class LowEndpointNotComputed(CdcError):
    """Cleanup by retention could not tell where the change tables should begin: nothing was changed."""

    number = 22923
    shape = "The new low endpoint of database '{0}' could not be computed from retention {1}: {2}"


class CleanupFailed(CdcError):
    """Cleanup by retention did not do all it should; low endpoints that have moved stay moved."""

    number = 22924
    shape = "Cleaning up database '{0}' by retention failed: {1}"


class WrapperColumnNotCaptured(CdcError):
    """The column list of a wrapper function names a column that the instance does not capture."""

    number = 22918
    shape = "Column '{0}' of @column_list is not a captured column of capture instance '{1}'."


class WrapperFlagNotCaptured(CdcError):
    """The update flag list of a wrapper function names a column that the instance does not capture."""

    number = 22919
    shape = "Column '{0}' of @update_flag_list is not a captured column of capture instance '{1}'."


class WrapperInstanceMissing(CdcError):
    """A wrapper function was asked of a capture instance that is unknown or not the caller's to read."""

    number = 22920
    shape = "Capture instance '{0}' does not exist in database '{1}'."


class WrapperListsWithoutInstance(CdcError):
    """Column lists were given while wrapper functions of all instances are asked for."""

    number = 22921
    shape = "@column_list and @update_flag_list must be empty when all capture instances are scripted."


# Jobs


class JobTypeUnsupported(CdcError):
    """A job type other than capture and cleanup."""

    number = 22992
    shape = "The @job_type {0} is not supported. Use 'capture' or 'cleanup'."


class MaxTransOutOfRange(CdcError):
    """@maxtrans is not positive."""

    number = 22991
    shape = "The value of @maxtrans must be greater than 0."


class MaxScansOutOfRange(CdcError):
    """@maxscans is not positive."""

    number = 22970
    shape = "The value of @maxscans must be greater than 0."


class ContinuousNotABit(CdcError):
    """@continuous is neither 0 nor 1."""

    number = 22998
    shape = "The value of @continuous must be 0 or 1."


class PollingIntervalOutOfRange(CdcError):
    """@pollinginterval is outside 0 … 86399 seconds."""

    number = 22990
    shape = "The value of @pollinginterval must be from 0 to 86399 seconds (24 hours)."


class PollingWithoutContinuous(CdcError):
    """@pollinginterval for a scan that is not continuous."""

    number = 22999
    shape = "The value of @pollinginterval must be null or 0 where sp_cdc_scan is not continuous."


class RetentionOutOfRange(CdcError):
    """@retention is outside 1 … 52594800 minutes (the job pages say 52494800)."""

    number = 22994
    shape = "The value of @retention must be greater than 0 and at most 52594800 minutes (100 years)."


class ThresholdOutOfRange(CdcError):
    """@threshold is not positive."""

    number = 22850
    shape = "The value of @threshold must be greater than 0."


class CleanupParametersForCapture(CdcError):
    """A parameter of the cleanup job was given for a capture job."""

    number = 22995
    shape = "{0} cannot be given for a capture job."


class CaptureParametersForCleanup(CdcError):
    """Parameters of the capture job were given for a cleanup job."""

    number = 22996
    shape = "@maxtrans, @maxscans, @continuous and @pollinginterval cannot be given for a cleanup job."


class JobMissing(CdcError):
    """The job is not in msdb.dbo.cdc_jobs."""

    number = 22997
    shape = "The '{0}' job of database '{1}' does not exist in msdb.dbo.cdc_jobs."


class JobNotAdded(CdcError):
    """A job could not be recorded: database, command, error number and text of it follow."""

    number = 22836
    shape = (
        "Could not record that a job of database {0} was added: command '{1}' failed with error {2}: '{3}'. "
        "Correct the cause and try again."
    )


# Scans


class ScanAlreadyRunning(CdcError):
    """Another process reads this database's log for change data capture."""

    number = 22903
    shape = "Another session ({0}) already reads the log of database '{1}' for change data capture."


class ScanFailed(CdcError):
    """A scan that was called ended with an error: number, severity, state and text are those of that one."""

    number = 22864

    def __init__(self, number: int, severity: int, state: int, text: str) -> None:
        super().__init__(text)
        self.number, self.severity, self.state = number, severity, state


class LogRecordsNotProcessed(CdcError):
    """Log records could not be turned into change rows."""

    number = 22859
    shape = "The log records of the scan could not be processed: {0}"


class OldRowsMissing(CdcError):
    """A tracked table did not log whole old rows: before images would lack columns."""

    number = 22859
    shape = (
        "The log records of the scan could not be processed: {0} updates or deletes of '{1}.{2}' came "
        "without their old row, because its replica identity was changed. Nothing wrong was captured. "
        "ALTER TABLE {1}.{2} REPLICA IDENTITY FULL; then disable capture instance '{3}' and enable the "
        "table again."
    )


class DdlNotProcessed(CdcError):
    """The log has a table in a shape that nobody can tell any more."""

    number = 22860
    shape = (
        "A DDL log record of table '{0}' could not be processed: nobody knows which column '{1}' was, "
        "because the table was altered before the log was read and no event trigger told of it. Disable "
        "capture instance '{2}' and enable the table again."
    )


class ChangesNotWritten(CdcError):
    """Change rows could not be appended to change tables."""

    number = 22863
    shape = "Could not insert rows into change tables: {0}"


class CapturedColumnChanged(CdcError):
    """A captured column has another type in the source, and values of its change table do not fit it."""

    number = 22976
    shape = (
        "Column '{0}' of capture instance '{1}' changed from {2} to {3} in the source; its change table "
        "could not be updated: {4} Nothing is lost: the log is kept. Consume the changes, then disable the "
        "instance and enable the table again."
    )


class CaptureJobFailed(CdcError):
    """The capture job gave up."""

    number = 22864
    shape = "The capture job of database '{0}' failed: {1}"


# Queries


class RangeOutsideValidity(CdcError):
    """An endpoint is NULL or outside the validity interval, or the row filter option is unknown."""

    number, severity, state = 313, 16, 3
    shape = "An insufficient number of arguments were supplied for the procedure or function {0} ..."


class InvalidObjectName(CdcError):
    """The query function does not exist: no such capture instance, or no net changes for it."""

    number, severity, state = 208, 16, 1
    shape = "Invalid object name '{0}'."


class SelectDenied(CdcError):
    """The principal may not read the capture instance whose query function was called."""

    number, severity, state = 229, 14, 5
    shape = "The SELECT permission was denied on the object '{0}', database '{1}', schema 'cdc'."


class RowIdentifierMissing(CdcError):
    """A table as of an LSN is asked for by a capture instance without a row identifier."""

    number = 50130
    shape = (
        "The table as of an LSN needs a row identifier; capture instance '{0}' has none. Enable table "
        "'{1}.{2}' with a primary key or @index_name."
    )


class RowsNotTold(CdcError):
    """A table's rows as of an LSN can't be told truly: which capture instance, and why."""

    number = 50131
    shape = "The rows of '{0}' as of an LSN can't be told: {1}."


class LsnOverflow(CdcError):
    """There is no LSN above the highest, none below zero."""

    number, state = 8115, 2
    shape = "Arithmetic overflow error converting expression to data type binary(10): {0} has no {1} LSN."


class LsnInvalid(CdcError):
    """A text that should be an LSN is none: the original fails to convert it to binary(10)."""

    number, state = 8114, 5
    shape = "Error converting data type nvarchar to binary: {0}."


class InvalidTimeOperator(CdcError):
    """map_time_to_lsn got a relational operator it does not know."""

    number = 50010
    shape = (
        "'{0}' is not a relational operator of fn_cdc_map_time_to_lsn. Use 'largest less than', "
        "'largest less than or equal', 'smallest greater than' or 'smallest greater than or equal'."
    )


# Ours


class SourceUnreachable(CdcError):
    """The source does not answer, or refuses the login: database, then the source's own words."""

    number = 50001
    shape = "Source database '{0}' cannot be reached: {1}"


class SourceUnfit(CdcError):
    """The source cannot be captured as it is; ``problems`` are lines of problem and fix."""

    number = 50002
    shape = "Source database '{0}' is not ready for change data capture:\n{1}"

    def __init__(self, database: str, problems: Sequence[str]) -> None:
        super().__init__(database, "\n".join(f"- {problem}" for problem in problems))
        self.problems = tuple(problems)


class LogBroken(CdcError):
    """The log does not go on where capture stopped: slot lost or recreated, another server or timeline."""

    number = 50003
    shape = (
        "The log of database '{0}' does not continue where capture stopped: {1}. Changes since are lost. "
        "Disable and enable the database, and load consumers anew."
    )


class AgentNotRunning(CdcError):
    """The call needs the agent, and none serves this home."""

    number = 50004
    shape = "The agent is not running{0}. Start it: highwater start"

    def __init__(self, consequence: str = "") -> None:
        super().__init__(f": {consequence}" if consequence else "")


class SyncTimeout(CdcError):
    """What was asked of the agent did not happen in time: what, seconds, and the reason known."""

    number = 50005
    shape = "{0} did not happen within {1:g} s: {2}"


class HomeTooNew(CdcError):
    """The home or the control database was written by a newer version of this program."""

    number = 50006
    shape = "{0} was written by a newer version of Highwater ({1}). Use that version, or another home."


class LeaseLost(CdcError):
    """Another capture process has taken over this database: nothing was published."""

    number = 50007
    shape = (
        "The lease on database '{0}' with token {1} is no longer current: another capture process took over."
    )


class DatabaseExists(CdcError):
    """A source of that name is registered with another DSN."""

    number = 50008
    shape = (
        "A database named '{0}' is already registered, for {1}. Choose another name, or let go of that one: "
        "highwater disconnect '{0}'"
    )


class EnabledElsewhere(CdcError):
    """enable_db or disable_db of a database that another home has enabled: its capture would end."""

    number = 50029
    shape = (
        "Database '{0}' is enabled for change data capture by another home of Highwater: disable it there. "
        "Where that home is gone: highwater disable -d {1} --force"
    )


class ObjectsGone(CdcError):
    """What enabling made in the source was dropped there by hand: database, what is gone."""

    number = 50019
    shape = (
        "Database '{0}' is enabled for change data capture, but {1} is gone from it: changes since then "
        "may be lost. Disable and enable the database."
    )


class NameNotUtf8(CdcError):
    """enable_table of a table with a name that is no text: the database does not know its encoding."""

    number = 50018
    shape = (
        "Source table '{0}' cannot be captured: the name '{1}' is not UTF-8, and the database (SQL_ASCII) "
        "does not say what it is. Rename it, with client_encoding = 'SQL_ASCII'."
    )


class SameDatabase(CdcError):
    """disable_db of a database that is enabled under another name: that one would lose its capture."""

    number = 50017
    shape = (
        "Database '{0}' is the same as '{1}', which is enabled for change data capture. Nothing was disabled."
    )


class DatabaseStillEnabled(CdcError):
    """disconnect of a database that is enabled for change data capture."""

    number = 50016
    shape = "Database '{0}' cannot be disconnected while it is enabled for change data capture. {1}"


class NameInvalid(CdcError):
    """A database name that cannot be used in paths and commands."""

    number = 50009
    shape = (
        "'{0}' is not a valid database name: 1 to 128 characters, no control characters, slashes "
        "or blanks at the ends."
    )


class ControlUnreachable(CdcError):
    """The control database does not answer: the server's own words follow."""

    number = 50011
    shape = "The control database cannot be reached: {0} Start it: highwater start"


class ControlNotWritable(ControlUnreachable):
    """The control database answers, but takes no changes: read-only, or short of disk or memory."""

    shape = "The control database takes no changes: {0} Once it does, everything goes on by itself."


class ClientNameInvalid(CdcError):
    """A client's name that is none."""

    number = 50080
    shape = (
        "'{0}' is not a name of a client: 1 to 128 characters, no control characters or blanks at the ends."
    )


class ClientUnknown(CdcError):
    """No client of that name is registered with the capture instance, or it was dropped."""

    number = 50081
    shape = (
        "Client '{0}' is not registered with capture instance '{1}': it never was, or it was dropped, by "
        "hand or because nothing was heard of it for too long. Cleanup may have passed it: look at the "
        "errors of the database and at the low endpoint, then register it anew."
    )


class AcknowledgementRefused(CdcError):
    """A client acknowledged less than before, less than there still is, or more than is published."""

    number = 50082
    shape = (
        "LSN {0} cannot be acknowledged by client '{1}': it is not between {2}, acknowledged already or the "
        "low endpoint, and the high watermark {3}."
    )


class LowWatermarkPassesClient(CdcError):
    """@low_water_mark is above what a client has acknowledged: cleanup would take changes it has not read."""

    number = 50083
    shape = (
        "LSN {0} cannot become the low endpoint: client '{1}' of capture instance '{2}' has acknowledged no "
        "more than {3}. Wait for it, drop it, or clean up with force, which drops it."
    )


class ClientDropped(CdcError):
    """Recorded when a client is dropped that did not ask for it."""

    number = 50084
    shape = "Client '{0}' of capture instance '{1}' was dropped: {2} It has acknowledged {3}."


class ExpiryInvalid(CdcError):
    """The limit of a client's silence is no length of time above zero."""

    number = 50085
    shape = (
        "'{0}' is not how long a client may be silent: a length of time above 0, like 90m, 36h or 7d; or "
        "never."
    )


class CompactionFailed(CdcError):
    """The small files of a table could not be made few, or unused ones not deleted; no row is touched."""

    number = 50086
    shape = "Compacting the tables of database '{0}' failed: {1}"


class DemoNamesTaken(CdcError):
    """The database has schemas of the demo company's names that are not the demo's."""

    number = 50013
    shape = (
        "The demo cannot be put into database '{0}': it already has {1}, not made by the demo. Use "
        "another database."
    )


class DemoMissing(CdcError):
    """The demo's workload was asked for where the demo company is not."""

    number = 50120
    shape = (
        "Database '{0}' does not have the demo company. Use database 'demo', or 'highwater demo -d {0}', "
        "which puts it there."
    )


class WorkloadInvalid(CdcError):
    """The demo's workload with a pace or a length that cannot be."""

    number = 50121
    shape = "The demo's rate is above 0 and at most {0} transactions a second, its length 0 to {1} seconds."


class WorkloadMixInvalid(CdcError):
    """The demo's workload with tables, parts or sizes that cannot be."""

    number = 50122
    shape = "The demo's workload cannot be so: {0}."


class ScheduleInvalid(CdcError):
    """The schedule of a cleanup job is no cron text."""

    number = 50015
    shape = (
        "'{0}' is not a schedule: {1}. Write it as cron has it, like '0 2 * * *' for daily at 02:00; an "
        "empty text is no schedule."
    )


class QueryFailed(CdcError):
    """Spark could not answer a query: the agent went away meanwhile, or a change table's files did."""

    number = 50014
    shape = "The query failed: {0} What the agent says of it is in the home's log folder."


class SubsystemUnknown(CdcError):
    """The step of a capture job is in a language that is not run here."""

    number = 50061
    shape = "'{0}' runs no job step. Give 'TSQL' or 'PYTHON'."


class StepInvalid(CdcError):
    """The script of a capture job's step cannot be run as it is."""

    number = 50062
    shape = "The script is no job step: {0}."


class StepFailed(CdcError):
    """The script of a capture job's step ended as failed."""

    number = 50063
    shape = "The step of job '{0}' ended with {1}.{2}"

    def __init__(self, job: str, how: str, last_line: str) -> None:
        super().__init__(job, how, f" Its last line: {last_line}" if last_line else "")


class AlertHookInvalid(CdcError):
    """The alert hook cannot be set so."""

    number = 50064
    shape = "The alert hook is not set: {0}."


class AlertNotDelivered(CdcError):
    """The alert hook did not take an alert."""

    number = 50065
    shape = "The alert was not delivered: {0}."


# Data collector


class CollectorObjectExists(CdcError):
    """A collection set has that name already."""

    number = 14261
    shape = "The specified {0} ('{1}') already exists."


class CollectorObjectMissing(CdcError):
    """There is no such collection set, schedule or collector type."""

    number = 14262
    shape = "The specified {0} ('{1}') does not exist."


class CollectorValueInvalid(CdcError):
    """A parameter of the collector's procedures has a value that is none of the possible ones."""

    number = 14266
    shape = "The specified '{0}' is invalid (valid values are: {1})."


class CollectorNameInvalid(CdcError):
    """The name of a collection set or item is empty."""

    number = 14607
    shape = "{0} name is not valid"


class ScheduleNotNamedOnce(CdcError):
    """A schedule is named by its uid and by its name."""

    number = 14373
    shape = "Supply either {0} or {1} to identify the schedule."


class CollectionSetNotNamed(CdcError):
    """Neither id nor name of a collection set is given."""

    number = 14624
    shape = 'At least one of the following parameters must be specified. "{0}".'


class CollectionSetActive(CdcError):
    """A collection set that runs cannot be deleted."""

    number = 14670
    shape = (
        "Cannot delete the active collection set '{0}'. Stop the collection set and then try to delete it "
        "again."
    )


class CollectionSetInactive(CdcError):
    """Only a cached set that runs uploads on demand."""

    number = 14674
    shape = (
        "Cannot upload data for the inactive collection set '{0}'. Start the collection set and then try to "
        "upload the data again."
    )


class CollectionSetNotChangeable(CdcError):
    """A collection set that runs keeps its name and mode, and takes no more items."""

    number = 14675
    shape = (
        "Cannot update the name, target, proxy_id, logging_level, or collection_mode, or add collection item "
        "to the active collection set '{0}'. Stop the collection set and then try to update it again."
    )


class CollectorDenied(CdcError):
    """The principal may not call the collector's procedures: it does not own the database it is in."""

    number = 14677
    shape = (
        "The user does not have permission to perform this operation. The user must be a member of data "
        "collector role '{0}'."
    )


class CachedModeNeedsSchedule(CdcError):
    """A collection set in cached mode was given no schedule."""

    number = 14683
    shape = "A collection set in cached mode requires a schedule."


class CollectionSetEmpty(CdcError):
    """A collection set without items was started: a warning."""

    number, severity = 14685, 10
    shape = (
        "Collection set: '{0}' does not contain any collection items, so starting the collection set will "
        "have no effect."
    )


class CollectionSetNeedsSchedule(CdcError):
    """A collection set without a schedule was started."""

    number = 14693
    shape = "A collection set cannot start without a schedule. Specify a schedule for the collection set."


class UploadNeedsCachedMode(CdcError):
    """sp_syscollector_upload_collection_set of a set that is not cached."""

    number = 14694
    shape = "Cannot upload data on-demand for the collection set '{0}' in non-cached mode."


class RunNeedsNonCachedMode(CdcError):
    """sp_syscollector_run_collection_set of a cached set."""

    number = 14695
    shape = "Cannot collect data on-demand for the collection set '{0}' in cached mode."


class SystemCollectionSet(CdcError):
    """The default collection set is not renamed or deleted, and takes no more items."""

    number = 14696
    shape = "Cannot update or delete a system collection set, or add new collection items to it."


class CollectionParametersInvalid(CdcError):
    """The parameter XML of a collection item is not what the collector takes."""

    number = 50090
    shape = "The collection item's parameters are not valid: {0}."


class CollectionScheduleInvalid(CdcError):
    """An interval or a schedule that the collector cannot keep."""

    number = 50091
    shape = (
        "'{0}' is no schedule of a collection set: {1}. Give one of the CollectorSchedule_Every_… names, "
        "cron text, or minutes of which a day has a whole number on the clock."
    )


class CollectionFailed(CdcError):
    """A collection that was asked for has failed; its text says why."""

    number = 50092
    shape = "The collection set '{0}' could not be collected: {1}"


class HistoryRangeInvalid(CdcError):
    """A range of the collected history ends before it begins, or is cut into too many parts."""

    number = 50093
    shape = "The range of the history is not valid: {0}."


# Users of the dashboard


class LoginFailed(CdcError):
    """A user who has no role here, or no longer, asked for something."""

    number, severity, state = 18456, 14, 1
    shape = (
        "Login failed for user '{0}'. Reason: no role was given. An admin gives one on the page Settings, "
        "the home's owner with: highwater roles set {1} viewer"
    )


class ExecuteDenied(CdcError):
    """The user's role does not allow what was called."""

    number, severity, state = 229, 14, 5
    shape = (
        "The EXECUTE permission was denied on the object '{0}', database '{1}', schema '{2}'. "
        "The role {3} is needed; the user '{4}' is {5}."
    )


class SourceDenied(CdcError):
    """A user to whom no principal was given asked for a session with SQL at a source."""

    number, severity, state = 916, 14, 1
    shape = (
        "The server principal '{0}' is not able to access the database '{1}' under the current security "
        "context. Statements run there with the rights of a role of the source: an admin gives a user one, "
        "on the page Settings or with: highwater roles set {2} {3} --principal ROLE"
    )


class ImpersonationDenied(CdcError):
    """A call on behalf of another principal than the user's own, by someone who is no admin."""

    number = 15517
    shape = (
        'Cannot execute as the database principal because the principal "{0}" does not exist, this type of '
        "principal cannot be impersonated, or you do not have permission."
    )


class RoleInvalid(CdcError):
    """A user's name, role or principal that can't be."""

    number = 50110
    shape = "{0} is not valid: {1}."


class UserUnknown(CdcError):
    """The role was to be taken of a user who has none."""

    number = 50111
    shape = "The user '{0}' has no role. See: highwater roles list"


class ExportsOff(CdcError):
    """A download of change data where an admin has switched downloads off."""

    number, severity = 50112, 14
    shape = "Exports are switched off: an admin can switch them on, on the page Settings."


class DownloadTooLarge(CdcError):
    """A file for a download would fill the disk on which the dashboard's server writes it."""

    number, severity = 50113, 17
    shape = "The file of this download does not fit: {0} has {1} MB left. Ask for fewer changes."
