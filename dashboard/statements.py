"""What an action does, as T-SQL and as PySpark: shown before it runs, copied from the page. Pure text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta

from engine.model.workload_mix import Mix


@dataclass(frozen=True, slots=True)
class Statement:
    """The same action in both languages."""

    tsql: str
    pyspark: str


@dataclass(frozen=True, slots=True)
class EnableTable:
    """Arguments of sp_cdc_enable_table as the wizard collects them (None: the procedure's default)."""

    source_schema: str
    source_name: str
    capture_instance: str | None = None
    supports_net_changes: bool | None = None
    role_name: str | None = None
    index_name: str | None = None
    captured_columns: tuple[str, ...] | None = None
    allow_partition_switch: bool = True

    @property
    def captured_column_list(self) -> str | None:
        """The comma list of the procedure; names quoted, so that a comma in one is no separator."""
        if self.captured_columns is None:
            return None
        return ", ".join(quoted(name) for name in self.captured_columns)


def quoted(name: str) -> str:
    """A name in brackets."""
    return "[" + name.replace("]", "]]") + "]"


def text(value: str) -> str:
    """An N'…' literal."""
    return "N'" + value.replace("'", "''") + "'"


def _opened() -> str:
    return "from engine import Engine, Lsn, Settings\n\nengine = Engine.open(Settings())\n"


def _opening(database: str) -> str:
    return f"{_opened()}database = {database!r}\n"


def enable_db(database: str) -> Statement:
    """sp_cdc_enable_db."""
    return Statement(
        f"USE {quoted(database)};\nEXEC sys.sp_cdc_enable_db;",
        _opening(database) + "engine.enable_db(database)",
    )


def enable_tables(database: str, tables: Sequence[EnableTable], with_database: bool) -> Statement:
    """sp_cdc_enable_table for each table, the database itself first where it is not enabled yet."""
    tsql = [f"USE {quoted(database)};"]
    python = [_opening(database)]
    if with_database:
        tsql.append("EXEC sys.sp_cdc_enable_db;")
        python.append("engine.enable_db(database)")
    for table in tables:
        tsql.append(_enable_table_tsql(table))
        python.append(_enable_table_python(table))
    return Statement("\n".join(tsql), "\n".join(python))


def _enable_table_tsql(table: EnableTable) -> str:
    arguments = [
        f"@source_schema = {text(table.source_schema)}",
        f"@source_name = {text(table.source_name)}",
        f"@role_name = {text(table.role_name) if table.role_name is not None else 'NULL'}",
    ]
    if table.capture_instance is not None:
        arguments.append(f"@capture_instance = {text(table.capture_instance)}")
    if table.supports_net_changes is not None:
        arguments.append(f"@supports_net_changes = {int(table.supports_net_changes)}")
    if table.index_name is not None:
        arguments.append(f"@index_name = {text(table.index_name)}")
    if table.captured_column_list is not None:
        arguments.append(f"@captured_column_list = {text(table.captured_column_list)}")
    if not table.allow_partition_switch:
        arguments.append("@allow_partition_switch = 0")
    return "EXEC sys.sp_cdc_enable_table\n    " + ",\n    ".join(arguments) + ";"


def _enable_table_python(table: EnableTable) -> str:
    arguments = [repr(table.source_schema), repr(table.source_name), f"role_name={table.role_name!r}"]
    for name in ("capture_instance", "supports_net_changes", "index_name", "captured_column_list"):
        value = getattr(table, name)
        if value is not None:
            arguments.append(f"{name}={value!r}")
    if not table.allow_partition_switch:
        arguments.append("allow_partition_switch=False")
    return f"engine.enable_table(database, {', '.join(arguments)})"


def switch_instance(database: str, old: str, new: str) -> Statement:
    """How a consumer changes over to another capture instance and neither loses nor repeats a change."""
    tsql = f"""USE {quoted(database)};
-- @last: the last LSN that this consumer has processed
DECLARE @last binary(10) = 0x00000000000000000000; -- put it here
DECLARE @from binary(10) = sys.fn_cdc_increment_lsn(@last), @upto binary(10) = sys.fn_cdc_get_max_lsn();
-- 1: once more from {old}, up to now
SELECT * FROM cdc.{quoted(f"fn_cdc_get_all_changes_{old}")}(@from, @upto, N'all');
-- 2: whatever comes after that from {new}
SET @from = sys.fn_cdc_increment_lsn(@upto);
SET @upto = sys.fn_cdc_get_max_lsn();
IF @from <= @upto
    SELECT * FROM cdc.{quoted(f"fn_cdc_get_all_changes_{new}")}(@from, @upto, N'all');"""
    python = f"""{_opening(database)}last = Lsn.parse("0x00000000000000000000")  # put the last one here
upto = engine.get_max_lsn(database)
engine.get_all_changes(database, {old!r}, engine.increment_lsn(last), upto, "all").show()
start, now = engine.increment_lsn(upto), engine.get_max_lsn(database)
if start <= now:
    engine.get_all_changes(database, {new!r}, start, now, "all").show()"""
    return Statement(tsql, python)


def disable_table(database: str, source_schema: str, source_name: str, capture_instance: str) -> Statement:
    """sp_cdc_disable_table."""
    return Statement(
        f"USE {quoted(database)};\nEXEC sys.sp_cdc_disable_table\n"
        f"    @source_schema = {text(source_schema)},\n    @source_name = {text(source_name)},\n"
        f"    @capture_instance = {text(capture_instance)};",
        _opening(database)
        + f"engine.disable_table(database, {source_schema!r}, {source_name!r}, {capture_instance!r})",
    )


def add_job(database: str, job_type: str = "capture", start_job: bool = True) -> Statement:
    """sp_cdc_add_job."""
    tsql, python = ("", "") if start_job else (", @start_job = 0", ", start_job=False")
    return Statement(
        f"USE {quoted(database)};\nEXEC sys.sp_cdc_add_job @job_type = {text(job_type)}{tsql};",
        _opening(database) + f"engine.add_job(database, {job_type!r}{python})",
    )


def start_job(database: str, job_type: str = "capture") -> Statement:
    """sp_cdc_start_job."""
    return Statement(
        f"USE {quoted(database)};\nEXEC sys.sp_cdc_start_job @job_type = {text(job_type)};",
        _opening(database) + f"engine.start_job(database, {job_type!r})",
    )


def stop_job(database: str, job_type: str = "capture") -> Statement:
    """sp_cdc_stop_job."""
    return Statement(
        f"USE {quoted(database)};\nEXEC sys.sp_cdc_stop_job @job_type = {text(job_type)};",
        _opening(database) + f"engine.stop_job(database, {job_type!r})",
    )


def change_job(database: str, job_type: str = "capture", **given: int | str) -> Statement:
    """sp_cdc_change_job with those of its parameters that change; ``@schedule`` is ours."""
    tsql = [
        f"@{name} = {text(value) if isinstance(value, str) else int(value)}" for name, value in given.items()
    ]
    python = [f"{name}={value!r}" for name, value in given.items()]
    return Statement(
        f"USE {quoted(database)};\nEXEC sys.sp_cdc_change_job @job_type = N'{job_type}',\n"
        f"    {', '.join(tsql)};",
        _opening(database) + f"engine.change_job(database, {job_type!r}, {', '.join(python)})",
    )


def get_changes(
    database: str, capture_instance: str, net: bool, from_lsn: str, to_lsn: str, row_filter_option: str
) -> Statement:
    """cdc.fn_cdc_get_all_changes_… or …net_changes_… over a closed interval of LSNs."""
    kind = "net" if net else "all"
    order = "" if net else "\nORDER BY __$start_lsn, __$seqval, __$operation"
    return Statement(
        f"USE {quoted(database)};\nDECLARE @from_lsn binary(10) = {from_lsn};\n"
        f"DECLARE @to_lsn binary(10) = {to_lsn};\nSELECT *\n"
        f"FROM cdc.{quoted(f'fn_cdc_get_{kind}_changes_{capture_instance}')}"
        f"(@from_lsn, @to_lsn, {text(row_filter_option)}){order};",
        _opening(database) + f"changes = engine.get_{kind}_changes(\n    database, {capture_instance!r}, "
        f"Lsn.parse({from_lsn!r}),\n    Lsn.parse({to_lsn!r}), {row_filter_option!r},\n)\nchanges.show()",
    )


def set_role(name: str, role: str, source_principal: str | None) -> Statement:
    """highwater.set_role."""
    given = f"@name = {text(name)}, @role = {text(role)}"
    call = f"engine.set_role({name!r}, {str(role)!r}"
    if source_principal is not None:
        given += f", @source_principal = {text(source_principal)}"
        call += f", {source_principal!r}"
    return Statement(f"EXEC highwater.set_role {given};", _opened() + f"{call})")


def set_dashboard_settings(exports: bool, zone: str) -> Statement:
    """highwater.set_dashboard_settings."""
    return Statement(
        f"EXEC highwater.set_dashboard_settings @exports = {int(exports)}, @zone = {text(zone)};",
        "from engine.model.dashboard import DashboardSettings\n"
        + _opened()
        + f"engine.set_dashboard_settings(DashboardSettings({exports}, {zone!r}))",
    )


def cleanup_change_table(
    database: str, capture_instance: str, low_water_mark: str | None, threshold: int, force: bool
) -> Statement:
    """sp_cdc_cleanup_change_table; ``@force`` is ours."""
    mark = "NULL" if low_water_mark is None else low_water_mark
    given = "None" if low_water_mark is None else f"Lsn.parse({low_water_mark!r})"
    return Statement(
        f"USE {quoted(database)};\nEXEC sys.sp_cdc_cleanup_change_table\n"
        f"    @capture_instance = {text(capture_instance)},\n    @low_water_mark = {mark},\n"
        f"    @threshold = {threshold}{', @force = 1' if force else ''};",
        _opening(database)
        + f"engine.cleanup_change_table(database, {capture_instance!r}, {given}, {threshold}"
        + (", force=True)" if force else ")"),
    )


def _client(database: str, call: str, name: str, capture_instance: str, tsql: str, python: str) -> Statement:
    return Statement(
        f"USE {quoted(database)};\nEXEC highwater.{call}\n    @name = {text(name)},\n"
        f"    @capture_instance = {text(capture_instance)}{tsql};",
        _opening(database) + f"engine.{call}(database, {name!r}, {capture_instance!r}{python})",
    )


def register_client(
    database: str, name: str, capture_instance: str, expires_after: timedelta | None
) -> Statement:
    """A client that cleanup waits for. ``expires_after``: None for never."""
    seconds = "NULL" if expires_after is None else str(int(expires_after.total_seconds()))
    given = "None" if expires_after is None else f"timedelta(days={expires_after.days})"
    tsql, python = f",\n    @expires_after = {seconds}", f", {given}"
    found = _client(database, "register_client", name, capture_instance, tsql, python)
    return replace(found, pyspark="from datetime import timedelta\n" + found.pyspark)


def acknowledge(database: str, name: str, capture_instance: str, lsn: str) -> Statement:
    """How far a client has come."""
    tsql, python = f",\n    @lsn = {lsn}", f", Lsn.parse({lsn!r})"
    return _client(database, "acknowledge", name, capture_instance, tsql, python)


def drop_client(database: str, name: str, capture_instance: str) -> Statement:
    """Cleanup no longer waits for it."""
    return _client(database, "drop_client", name, capture_instance, "", "")


def compact(database: str) -> Statement:
    """Few files of many small ones."""
    return Statement(
        f"USE {quoted(database)};\nEXEC highwater.compact;", _opening(database) + "engine.compact(database)"
    )


def _collector(call: str, arguments: str, python: str) -> Statement:
    return Statement(
        f"EXEC msdb.dbo.{call}\n    {arguments};",
        _opened() + python,
    )


def start_collection_set(name: str) -> Statement:
    """sp_syscollector_start_collection_set."""
    python = f"engine.start_collection_set({name!r})"
    return _collector("sp_syscollector_start_collection_set", f"@name = {text(name)}", python)


def stop_collection_set(name: str) -> Statement:
    """sp_syscollector_stop_collection_set."""
    python = f"engine.stop_collection_set({name!r})"
    return _collector("sp_syscollector_stop_collection_set", f"@name = {text(name)}", python)


def update_collection_set(name: str, schedule: str | None, days: int | None) -> Statement:
    """sp_syscollector_update_collection_set: how often, and how long it is kept; None leaves it as it is."""
    tsql, python = f"@name = {text(name)}", f"engine.update_collection_set({name!r}"
    if schedule is not None:
        tsql += f", @schedule_name = {text(schedule)}"
        python += f", schedule={schedule!r}"
    if days is not None:
        tsql += f", @days_until_expiration = {days}"
        python += f", days_until_expiration={days}"
    return _collector("sp_syscollector_update_collection_set", tsql, f"{python})")


def collect(name: str) -> Statement:
    """A snapshot now."""
    return Statement(
        f"EXEC highwater.collect @collection_set = {text(name)};", _opened() + f"engine.collect({name!r})"
    )


def run_demo(database: str, rate: float, seconds: float, seed: int, mix: Mix) -> Statement:
    """highwater.demo, with what of its mix is not the company's own."""
    own = Mix()
    changed = {
        field.name: getattr(mix, field.name)
        for field in fields(Mix)
        if getattr(mix, field.name) != getattr(own, field.name)
    }
    more = "".join(
        f", @{name} = {text(value) if isinstance(value, str) else value}" for name, value in changed.items()
    )
    mixed = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    return Statement(
        f"USE {quoted(database)};\n"
        f"EXEC highwater.demo @rate = {rate}, @seconds = {seconds}, @seed = {seed}{more};",
        _opening(database)
        + ("from engine.model.workload_mix import Mix\n" if mixed else "")
        + f"engine.run_demo(database, {rate}, {seconds}, {seed}{f', mix=Mix({mixed})' if mixed else ''})",
    )
