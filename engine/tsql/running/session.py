"""What the statements of a session share, and leave behind for the next ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from engine.tsql.cursors import Cursor
from engine.tsql.environment import State
from engine.tsql.messages import sql_error
from engine.tsql.sink import Sink
from engine.tsql.spark_sql import Wrapper
from engine.tsql.statements import DefineFunction
from engine.tsql.types import Value
from engine.tsql.work import SourceWork

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.query.ad_hoc import AdHocQuery

OPTIONS: Mapping[str, tuple[str, int]] = {
    "show advanced options": ("show advanced options", 0),
    "max text repl size": ("max text repl size (B)", 65536),
    "max text repl size (b)": ("max text repl size (B)", 65536),
}
"""Options of sp_configure that say nothing here: values of any size are captured whole."""


@dataclass(slots=True)
class VariableScope:
    """Variables of a batch, or of one sp_executesql."""

    variables: dict[str, Value] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    """Table variables and the statements that make them."""


def _no_function(name: str, arguments: Sequence[Value]) -> Value:
    raise sql_error(4121, name)


class Session:
    """One database at a time, one principal, one connection to the source."""

    def __init__(
        self,
        engine: Engine,
        database: str,
        sink: Sink,
        principal: str | None,
        clock: Callable[[], datetime],
        sleep: Callable[[float], None],
    ) -> None:
        """``principal``: a role of the source whose rights hold; None: the owner's."""
        self.engine = engine
        self.sink = sink
        self.clock = clock
        self.sleep = sleep
        self._login = principal
        self.before_rollback: Callable[[], Callable[[], None]] = lambda: lambda: None
        self.use(database)
        self.state = State()
        self.scopes = [VariableScope()]
        self.cursors: dict[str, Cursor] = {}
        self.wrappers: dict[str, Wrapper] = {}
        self.functions: dict[str, DefineFunction] = {}
        self.call_function: Callable[[str, Sequence[Value]], Value] = _no_function
        self.configured = dict(OPTIONS.values())
        self.nocount = False
        self.xact_abort = False
        self.line = 1
        self.stopped: Callable[[], bool] = lambda: False
        """Whether the user wants no more of what runs."""
        self.spark_query: AdHocQuery | None = None
        """The one that runs or gives rows now."""

    def use(self, database: str) -> None:
        """A connection to another database: opened when it is first needed."""
        self.database = database
        self.in_msdb = False
        self.work = SourceWork(lambda: self.engine.sql_session(database), database, self._login)
        self.work.before_rollback = lambda: self.before_rollback()

    def is_owner(self) -> bool:
        """Whether the rights of the database's owner hold."""
        principal = self.work.principal
        return principal is None or self.engine.privileges(self.database, principal).is_owner

    def is_enabled(self) -> bool:
        """Whether the database is enabled for change data capture."""
        return self.engine.database(self.database).is_cdc_enabled

    @property
    def variables(self) -> dict[str, Value]:
        """Those of the innermost scope."""
        return self.scopes[-1].variables

    def counted(self, rows: int) -> None:
        """@@ROWCOUNT, and its message unless NOCOUNT is ON."""
        self.state.rowcount = rows
        if not self.nocount:
            self.sink.count(rows)
