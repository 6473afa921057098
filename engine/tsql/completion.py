"""What an editor of T-SQL offers: words that can be completed, and a call of each procedure to fill in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from engine.errors import CdcError
from engine.tsql.calling import REQUIRED, Parameter
from engine.tsql.catalog_views import VIEWS
from engine.tsql.evaluation import CDC_FUNCTIONS
from engine.tsql.functions import FUNCTIONS
from engine.tsql.procedures import OWN, PROCEDURES
from engine.tsql.tokens import STARTERS

if TYPE_CHECKING:
    from engine.engine import Engine

_WORDS = STARTERS | {"FROM", "WHERE", "ORDER BY", "GROUP BY", "TABLE", "TRANSACTION", "GO", "INTO", "VALUES"}


def words(engine: Engine, database: str) -> Iterator[str]:
    """T-SQL's words, procedures, functions, views, tables, columns, instances; some may come twice."""
    yield from _WORDS
    yield from FUNCTIONS
    yield from (f"sys.{name}" for name in PROCEDURES)
    yield from (f"sys.{name.lower()}" for name in CDC_FUNCTIONS)
    yield from VIEWS
    yield "cdc.lsn_time_mapping"
    yield from (f"highwater.{name}" for name in OWN)
    try:
        for table in engine.source_tables(database):
            yield f"{table.schema}.{table.name}"
            yield from (column.name for column in table.columns)
        if not engine.database(database).is_cdc_enabled:
            return
        for instance in engine.help_change_data_capture(database):
            yield f"cdc.fn_cdc_get_all_changes_{instance.capture_instance}"
            if instance.supports_net_changes:
                yield f"cdc.fn_cdc_get_net_changes_{instance.capture_instance}"
            yield f"cdc.{instance.change_table}"
            yield instance.capture_instance
    except CdcError as error:
        # Typing must go on while a database is away; statements say what is wrong.
        yield f"-- {error}"


def snippets() -> Mapping[str, str]:
    """A call of each procedure with all its parameters: those with a default have it, in a comment."""
    return {name: _call(name, procedure.parameters) for name, procedure in sorted(PROCEDURES.items())}


def _call(name: str, parameters: tuple[Parameter, ...]) -> str:
    needed = [f"    {each.name} = {_example(each)}" for each in parameters if each.default is REQUIRED]
    optional = [f"{each.name} = {_default(each)}" for each in parameters if each.default is not REQUIRED]
    call = f"EXEC sys.{name}" + ("\n" + ",\n".join(needed) if needed else "") + ";"
    return call + (f"\n-- more: {', '.join(optional)}" if optional else "") + "\n"


def _example(parameter: Parameter) -> str:
    return "0x" if parameter.type.name == "binary" else "N''" if "char" in parameter.type.name else "0"


def _default(parameter: Parameter) -> str:
    match parameter.default:
        case None:
            return "NULL"
        case bool():
            return str(int(parameter.default))
        case str():
            return f"N'{parameter.default}'"
    return str(parameter.default)
