"""A call of each method of `Engine` that changes something, with values for all its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from engine.commands.access import ACCESS, Command
from engine.engine import Engine
from engine.model.alert import AlertHook
from engine.model.dashboard import DashboardSettings
from engine.model.lsn import Lsn

COMMANDS = sorted(name for name, access in ACCESS.items() if isinstance(access, Command))
VALUES: Mapping[str, Any] = {
    "database": "the [shop]",
    "dsn": "postgresql://sam:hush'hush@db.example.com/shop",
    "name": "it's",
    "source_schema": "hr",
    "source_name": "department",
    "role_name": None,
    "capture_instance": "hr_department",
    "supports_net_changes": True,
    "job_type": "capture",
    "subsystem": "TSQL",
    "command": "EXEC sys.sp_cdc_scan;\nPRINT 'done'",
    "low_water_mark": Lsn(bytes(range(10))),
    "lsn": Lsn(bytes(range(10))),
    "expires_after": timedelta(hours=2),
    "timeout": 3.5,
    "collection_set": "Change Data Capture",
    "parameters": "<a b='c'/>",
    "schedule_uid": UUID(int=7),
    "interval_minutes": 10,
    "new_name": "other",
    "hook": AlertHook(webhook="https://hooks.example.com/T0/secret?token=1", lag_seconds=9),
    "role": "operator",
    "settings": DashboardSettings(exports=False, zone="Local"),
    "statement": "SELECT 1;",
    "continuous": 0,
    "force": True,
}


def signature(name: str) -> inspect.Signature:
    return inspect.signature(getattr(Engine, name))


def given(name: str) -> dict[str, Any]:
    """Values of the method's parameters, the default's where there is none above."""
    found = {}
    for parameter in list(signature(name).parameters.values())[1:]:
        is_needed = parameter.default is inspect.Parameter.empty
        if is_needed or parameter.name not in ("principal", "stop", "on_message"):
            found[parameter.name] = VALUES.get(parameter.name, None if is_needed else parameter.default)
    return found
