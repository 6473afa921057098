"""msdb.dbo.sp_syscollector_*: the data collector by its names in T-SQL (reference/monitoring.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from engine.errors import (
    CollectionSetInactive,
    CollectionSetNotNamed,
    CollectorDenied,
    CollectorObjectMissing,
    RunNeedsNonCachedMode,
    UploadNeedsCachedMode,
)
from engine.model.collection import TSQL_COLLECTOR, CollectionMode, CollectionSet
from engine.tsql.calling import REQUIRED, Call, Parameter, Procedure
from engine.tsql.types import BIT, GUID, INT, SYSNAME, TEXT, SqlType

_SMALLINT = SqlType("smallint")
_DESCRIPTION = SqlType("nvarchar", 4000)
_LONGEST_KEPT = 730
"""The procedure's default of @days_until_expiration."""


def _check(call: Call) -> None:
    """Raises CollectorDenied where the caller does not own the database: roles of msdb are not here.

    Of a user of the dashboard the engine asks for the role of operator in its place.
    """
    principal = call.principal
    is_own = principal == call.engine.user().reads_as
    if principal is not None and not is_own and not call.engine.privileges(call.database, principal).is_owner:
        raise CollectorDenied("dc_admin")


def _named(call: Call) -> CollectionSet:
    """The set of @collection_set_id or @name; of both where they are one's."""
    number, name = call["collection_set_id"], call["name"]
    if number is None and name is None:
        raise CollectionSetNotNamed("@collection_set_id, @name")
    for each in call.engine.collection_sets():
        is_it = name is None or each.name.lower() == name.strip().lower()
        if is_it and number in (None, each.collection_set_id):
            return each
    if number is not None:
        raise CollectorObjectMissing("@collection_set_id", number)
    raise CollectorObjectMissing("@name", name)


def _uid(value: str | None) -> UUID | None:
    return None if value is None else UUID(value)


def _create(call: Call) -> None:
    _check(call)
    mode, days, level = call["collection_mode"], call["days_until_expiration"], call["logging_level"]
    number = call.engine.create_collection_set(
        call["name"],
        schedule=call["schedule_name"],
        schedule_uid=_uid(call["schedule_uid"]),
        interval_minutes=call["interval_minutes"],
        collection_mode=0 if mode is None else mode,
        days_until_expiration=_LONGEST_KEPT if days is None else days,
        logging_level=1 if level is None else level,
        description=call["description"],
    )
    [made] = [each for each in call.engine.collection_sets() if each.collection_set_id == number]
    call.outputs["@collection_set_id"] = number
    call.outputs["@collection_set_uid"] = str(made.collection_set_uid).upper()


def _create_item(call: Call) -> None:
    _check(call)
    frequency = call["frequency"]
    call.outputs["@collection_item_id"] = call.engine.create_collection_item(
        call["collection_set_id"],
        call["name"],
        call["parameters"],
        5 if frequency is None else frequency,
        _uid(call["collector_type_uid"]) or TSQL_COLLECTOR,
    )


def _start(call: Call) -> None:
    _check(call)
    call.engine.start_collection_set(_named(call).collection_set_id)


def _stop(call: Call) -> None:
    _check(call)
    call.engine.stop_collection_set(_named(call).collection_set_id)


def _update(call: Call) -> None:
    _check(call)
    call.engine.update_collection_set(
        _named(call).collection_set_id,
        new_name=call["new_name"],
        schedule=call["schedule_name"],
        schedule_uid=_uid(call["schedule_uid"]),
        interval_minutes=call["interval_minutes"],
        collection_mode=call["collection_mode"],
        days_until_expiration=call["days_until_expiration"],
        logging_level=call["logging_level"],
        description=call["description"],
    )


def _delete(call: Call) -> None:
    _check(call)
    call.engine.delete_collection_set(_named(call).collection_set_id)


def _run(call: Call) -> None:
    """On demand, for sets that are not cached."""
    _check(call)
    found = _named(call)
    if found.collection_mode is CollectionMode.CACHED:
        raise RunNeedsNonCachedMode(found.name)
    call.engine.collect(found.collection_set_id)


def _upload(call: Call) -> None:
    """On demand, for cached sets that run: they keep nothing back, so a snapshot is taken."""
    _check(call)
    found = _named(call)
    if found.collection_mode is CollectionMode.NON_CACHED:
        raise UploadNeedsCachedMode(found.name)
    if not found.is_running:
        raise CollectionSetInactive(found.name)
    call.engine.collect(found.collection_set_id)


_SET = (Parameter("@collection_set_id", INT), Parameter("@name", SYSNAME))


def _settings(mode: int | None, days: int | None, level: int | None) -> Sequence[Parameter]:
    """Parameters that making and changing a set share; proxies have no meaning here."""
    return (
        Parameter("@target", SYSNAME),
        Parameter("@collection_mode", _SMALLINT, mode),
        Parameter("@days_until_expiration", _SMALLINT, days),
        Parameter("@proxy_id", INT),
        Parameter("@proxy_name", SYSNAME),
        Parameter("@schedule_uid", GUID),
        Parameter("@schedule_name", SYSNAME),
        Parameter("@logging_level", _SMALLINT, level),
        Parameter("@description", _DESCRIPTION),
        Parameter("@interval_minutes", INT),  # ours: the original has schedules alone
    )


_ALL = (
    Procedure(
        "sp_syscollector_create_collection_set",
        (
            Parameter("@name", SYSNAME, REQUIRED),
            *_settings(0, _LONGEST_KEPT, 1),
            Parameter("@collection_set_id", INT, is_output=True),
            Parameter("@collection_set_uid", GUID, is_output=True),
        ),
        _create,
    ),
    Procedure(
        "sp_syscollector_create_collection_item",
        (
            Parameter("@collection_set_id", INT, REQUIRED),
            Parameter("@collector_type_uid", GUID, REQUIRED),
            Parameter("@name", SYSNAME, REQUIRED),
            Parameter("@frequency", INT, 5),
            Parameter("@parameters", TEXT),
            Parameter("@collection_item_id", INT, is_output=True),
        ),
        _create_item,
    ),
    Procedure("sp_syscollector_start_collection_set", _SET, _start),
    Procedure(
        "sp_syscollector_stop_collection_set", (*_SET, Parameter("@stop_collection_job", BIT, True)), _stop
    ),
    Procedure(
        "sp_syscollector_update_collection_set",
        (*_SET, Parameter("@new_name", SYSNAME), *_settings(None, None, None)),
        _update,
    ),
    Procedure("sp_syscollector_delete_collection_set", _SET, _delete),
    Procedure("sp_syscollector_run_collection_set", _SET, _run),
    Procedure("sp_syscollector_upload_collection_set", _SET, _upload),
)
PROCEDURES: Mapping[str, Procedure] = {procedure.name: procedure for procedure in _ALL}
"""Procedures of msdb's schema dbo, by their names in lower case."""


def collector_procedure(name: Sequence[str]) -> Procedure | None:
    """The procedure of a name with or without schema and database; None for one that is none of these."""
    *qualifier, last = [part.lower() for part in name]
    if qualifier and qualifier[-1] not in ("", "dbo"):
        return None
    return PROCEDURES.get(last)
