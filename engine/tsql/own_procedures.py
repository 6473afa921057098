"""Procedures of schema ``highwater``: what is ours and the original has no name for, over `Engine`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from time import sleep

from engine.model.alert import AlertHook
from engine.model.client import EXPIRES_AFTER
from engine.model.collection import DEFAULT_SET
from engine.model.dashboard import DashboardSettings
from engine.model.lsn import Lsn
from engine.model.workload_mix import Mix
from engine.tsql.calling import REQUIRED, Call, Parameter, Procedure
from engine.tsql.messages import Message
from engine.tsql.types import BIGINT, BIT, INT, LSN, SYSNAME, TEXT, SqlType

_ROLE = SqlType("nvarchar", 20)
_PERSON = SqlType("nvarchar", 320)


def _say(call: Call, text: str) -> None:
    call.sink.message(Message(0, 0, 1, text, 0))


def _connect(call: Call) -> None:
    for problem in call.engine.connect(call["name"], call["dsn"]):
        _say(call, f"{problem.problem} {problem.fix}".strip())


def _disconnect(call: Call) -> None:
    for problem in call.engine.disconnect(call["database"], bool(call["force"])):
        _say(call, f"{problem.problem} {problem.fix}".strip())


def _compact(call: Call) -> None:
    timeout = call["timeout"]
    if timeout is None:
        call.engine.compact(call.database, principal=call.principal)
    else:
        call.engine.compact(call.database, timeout, call.principal)


def _register_client(call: Call) -> None:
    seconds = call["expires_after"]
    call.engine.register_client(
        call.database,
        call["name"],
        call.instance(call["capture_instance"]) or "",
        None if seconds is None else timedelta(seconds=seconds),
        call.principal,
    )


def _acknowledge(call: Call) -> None:
    lsn = call["lsn"]
    instance = call.instance(call["capture_instance"]) or ""
    call.engine.acknowledge(
        call.database, call["name"], instance, None if lsn is None else Lsn(lsn), call.principal
    )


def _drop_client(call: Call) -> None:
    instance = call.instance(call["capture_instance"]) or ""
    call.engine.drop_client(call.database, call["name"], instance, call.principal)


def _update_job_step(call: Call) -> None:
    call.engine.update_job_step(call.database, call["subsystem"], call["command"], call.principal)


def _demo(call: Call) -> None:
    def stopped(seconds: float) -> bool:
        sleep(seconds)
        return call.stopped is not None and call.stopped()

    given = {field.name: call[field.name] for field in fields(Mix)}
    mix = Mix(**{name: value for name, value in given.items() if value is not None})
    summary = call.engine.run_demo(call.database, call["rate"], call["seconds"], call["seed"], stopped, mix)
    _say(call, summary.line())


def _collect(call: Call) -> None:
    call.engine.collect(call["collection_set"])


def _set_alert_hook(call: Call) -> None:
    names = ("lag_seconds", "stall_seconds", "slot_bytes", "timeout_seconds")
    given = {name: call[name] for name in names if call[name] is not None}
    call.engine.set_alert_hook(AlertHook(command=call["command"], webhook=call["webhook"], **given))


def _test_alert_hook(call: Call) -> None:
    _say(call, call.engine.test_alert_hook())


def _set_role(call: Call) -> None:
    call.engine.set_role(call["name"], call["role"], call["source_principal"])


def _drop_role(call: Call) -> None:
    call.engine.drop_role(call["name"])


def _set_dashboard_settings(call: Call) -> None:
    call.engine.set_dashboard_settings(DashboardSettings(bool(call["exports"]), call["zone"]))


_NAME = Parameter("@name", SYSNAME, REQUIRED)
_USER = Parameter("@name", _PERSON, REQUIRED)
_INSTANCE = Parameter("@capture_instance", SYSNAME, REQUIRED)

_ALL = (
    Procedure("connect", (_NAME, Parameter("@dsn", TEXT, REQUIRED)), _connect, changes=True),
    Procedure(
        "disconnect",
        (Parameter("@database", SYSNAME, REQUIRED), Parameter("@force", BIT, False)),
        _disconnect,
        changes=True,
    ),
    Procedure("compact", (Parameter("@timeout", SqlType("float")),), _compact),
    Procedure(
        "register_client",
        (_NAME, _INSTANCE, Parameter("@expires_after", BIGINT, int(EXPIRES_AFTER.total_seconds()))),
        _register_client,
    ),
    Procedure("acknowledge", (_NAME, _INSTANCE, Parameter("@lsn", LSN, REQUIRED)), _acknowledge),
    Procedure("drop_client", (_NAME, _INSTANCE), _drop_client),
    Procedure(
        "update_job_step",
        (Parameter("@subsystem", SYSNAME, REQUIRED), Parameter("@command", TEXT, REQUIRED)),
        _update_job_step,
    ),
    Procedure(
        "demo",
        (
            Parameter("@rate", SqlType("float"), 10.0),
            Parameter("@seconds", SqlType("float"), 60.0),
            Parameter("@seed", INT, 1),
            Parameter("@schemas", TEXT, ""),
            *(Parameter(f"@{name}", INT, 0) for name in ("inserts", "updates", "deletes")),
            *(Parameter(f"@{name}", INT, 1) for name in ("rows", "burst")),
        ),
        _demo,
    ),
    Procedure("collect", (Parameter("@collection_set", SYSNAME, DEFAULT_SET),), _collect),
    Procedure(
        "set_alert_hook",
        (
            Parameter("@command", TEXT),
            Parameter("@webhook", TEXT),
            Parameter("@lag_seconds", INT),
            Parameter("@stall_seconds", INT),
            Parameter("@slot_bytes", BIGINT),
            Parameter("@timeout_seconds", INT),
        ),
        _set_alert_hook,
    ),
    Procedure("test_alert_hook", (), _test_alert_hook),
    Procedure(
        "set_role",
        (_USER, Parameter("@role", _ROLE, REQUIRED), Parameter("@source_principal", SYSNAME)),
        _set_role,
    ),
    Procedure("drop_role", (_USER,), _drop_role),
    Procedure(
        "set_dashboard_settings",
        (Parameter("@exports", BIT, REQUIRED), Parameter("@zone", SYSNAME, REQUIRED)),
        _set_dashboard_settings,
    ),
)
OWN_PROCEDURES: Mapping[str, Procedure] = {procedure.name: procedure for procedure in _ALL}
"""By their names."""
