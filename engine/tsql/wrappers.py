"""Wrapper functions from the scripts of sys.sp_cdc_generate_wrapper_function.

A script is not run as T-SQL: one that is generated for an instance, letter by letter, stands for
`Engine.all_changes_by_time` or `Engine.net_changes_by_time`, which do what it says.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.tsql.messages import sql_error
from engine.tsql.spark_sql import Wrapper

if TYPE_CHECKING:
    from engine.engine import Engine

_NAME = re.compile(
    r"\s*create\s+function\s+(?:\[?dbo\]?\s*\.\s*)?\[?(?P<name>fn_(?P<kind>all|net)_changes_(?P<instance>(?:[^\]\s(]|\]\])+))\]?",
    re.IGNORECASE,
)
_UNSUPPORTED = "CREATE FUNCTION of other text than sys.sp_cdc_generate_wrapper_function gives"


def wrapper_of(engine: Engine, database: str, script: str, principal: str | None) -> tuple[str, Wrapper]:
    """Name and meaning of a script. Raises 50040 for other text."""
    head = _NAME.match(script)
    if head is None:
        raise sql_error(50040, _UNSUPPORTED, "Create what that procedure returns.")
    for closed in (True, False):
        for function in engine.generate_wrapper_function(database, None, closed, None, None, principal):
            if _plain(function.create_script) == _plain(script):
                _, kind, _, instance = function.function_name.split("_", 3)
                return function.function_name, Wrapper(instance, kind, closed)
    return _with_lists(engine, database, script, principal, head)


def _with_lists(
    engine: Engine, database: str, script: str, principal: str | None, head: re.Match[str]
) -> tuple[str, Wrapper]:
    """A script of some columns, or with update flags: its lists are read from what it returns."""
    instance, kind = head["instance"].replace("]]", "]"), head["kind"].lower()
    columns, flags = _lists(script)
    for closed in (True, False):
        for function in engine.generate_wrapper_function(
            database, instance, closed, columns, flags, principal
        ):
            if _plain(function.create_script) == _plain(script):
                return function.function_name, Wrapper(instance, kind, closed, columns, flags)
    raise sql_error(50040, _UNSUPPORTED, "Create what that procedure returns.")


def _lists(script: str) -> tuple[str | None, str | None]:
    table = re.search(r"returns @resultset table\s*\((.*?)\n\)", script, re.DOTALL | re.IGNORECASE)
    names = re.findall(r"^\s*(\[(?:[^\]]|\]\])+\])", table[1], re.MULTILINE) if table else []
    plain = [name for name in names if not name.startswith("[__CDC_")]
    flags = [name for name in plain if name.endswith("_uflag]")]
    columns = [name for name in plain if name not in flags]
    listed = [f"{name[: -len('_uflag]')]}]" for name in flags]
    return ", ".join(columns) or None, ", ".join(listed) or None


def _plain(script: str) -> str:
    return " ".join(script.split())
