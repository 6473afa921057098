"""THROW and RAISERROR."""

from __future__ import annotations

from engine.tsql import statements as st
from engine.tsql.conversion import as_text, convert
from engine.tsql.formatting import formatted
from engine.tsql.messages import USER_ERROR, Message, SqlError, sql_error
from engine.tsql.running.queries import Queries
from engine.tsql.types import INT


def throw(queries: Queries, statement: st.Throw) -> None:
    """THROW: the caught error again, or a new one. Raises 35100."""
    if not statement.arguments:
        raise SqlError(queries.session.state.caught[-1], True)
    number, text, state = (queries.value(argument) for argument in statement.arguments)
    code = convert(number, INT).value
    if not isinstance(code, int) or code < USER_ERROR:
        raise sql_error(35100, code)
    level = convert(state, INT).value
    message = Message(code, 16, int(level or 0) % 256, "" if text.is_null else as_text(text), 0)  # type: ignore[arg-type]
    raise SqlError(message, True)


def raise_error(queries: Queries, statement: st.RaiseError) -> None:
    """RAISERROR. Raises 2754, 18054."""
    text, severity, state, *rest = (queries.value(argument) for argument in statement.arguments)
    level, place = convert(severity, INT).value, convert(state, INT).value
    if not isinstance(level, int) or level < 0:
        level = 0
    if level > 18:
        raise sql_error(2754)
    number = USER_ERROR
    if text.type.is_integer:
        number = int(text.value or 0)  # type: ignore[arg-type]
        raise sql_error(18054, number, level, place)
    words = formatted("" if text.is_null else as_text(text), rest)
    # A negative state is shown as 1; documented samples give -1.
    shown = place if isinstance(place, int) and 0 <= place <= 255 else 1
    raise SqlError(Message(number, level, shown, words, 0), False, True)
