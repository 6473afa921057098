"""Every call of `Engine` passes here: may the user, and where it changes something, who did it.

One decorator over the class and the table of `engine.commands.access`, so that no method is left out.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from inspect import isfunction, signature
from typing import Any, Protocol, TypeVar

from engine.commands.access import Command, Free, Read, access_to, least_role
from engine.commands.statements import masked, statement_of
from engine.control import ControlDatabase
from engine.errors import CdcError, ControlUnreachable, ExecuteDenied, ImpersonationDenied, LoginFailed
from engine.model.activity import Outcome
from engine.model.user import Role, User

MESSAGE = 10
"""Up to this severity an error is a message: what was asked for is so."""
_REFUSALS = (ExecuteDenied, ImpersonationDenied, LoginFailed)


class Actor:
    """Who calls, and where that is written down.

    A `User` is who it is. A name is asked for in the roles at each call: a role that was taken holds at once.
    """

    def __init__(self, control: ControlDatabase, who: User | str, is_owner: bool = False) -> None:
        """``is_owner``: the owner of the home, on this machine."""
        self._control = control
        self._who = who
        self.is_owner = is_owner

    @property
    def user(self) -> User:
        """Who it is, with the role of now."""
        if isinstance(self._who, User):
            return self._who
        found = self._control.users.get(self._who)
        return User(self._who, None) if found is None else found.user

    @contextmanager
    def recorded(self, user: User, database: str | None, command: str, statement: str) -> Iterator[Record]:
        """Writes down an action before it begins and how it ended; without the first it does not begin."""
        record = Record(self._control.activity.begun(user, database, command, masked(statement)))
        try:
            yield record
        except BaseException as error:
            with suppress(ControlUnreachable):  # the error itself says more
                self._control.activity.ended(record.activity_id, *_outcome(error))
            raise
        self._control.activity.ended(record.activity_id, record.outcome, record.number, record.text)


@dataclass(slots=True)
class Record:
    """An action that runs, for what ends it without an exception."""

    activity_id: int
    outcome: Outcome = Outcome.OK
    number: int | None = None
    text: str | None = None

    def failed(self, number: int, text: str) -> None:
        """It has ended, with an error that its caller was shown; the first one counts."""
        if self.outcome is Outcome.OK:
            self.outcome, self.number, self.text = Outcome.FAILED, number, masked(text)


def _outcome(error: BaseException) -> tuple[Outcome, int, str]:
    if not isinstance(error, CdcError):
        return Outcome.FAILED, 0, type(error).__name__
    if isinstance(error, _REFUSALS):
        return Outcome.REFUSED, error.number, str(error)
    return Outcome.OK if error.severity <= MESSAGE else Outcome.FAILED, error.number, masked(str(error))


class Guarded(Protocol):
    """What the decorator needs of its class."""

    @property
    def _actor(self) -> Actor: ...


T = TypeVar("T")


def guarded(cls: type[T]) -> type[T]:
    """A class decorator: public methods ask first (LoginFailed, ExecuteDenied), commands are written down."""
    for name, method in list(vars(cls).items()):
        if not name.startswith("_") and isfunction(method) and not isinstance(access_to(name), Free):
            setattr(cls, name, _guard(name, method))
    return cls


def _guard(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    shape, access = signature(method), access_to(name)
    principal = shape.parameters.get("principal")
    asks_for_principal = principal is not None and principal.default is None

    @wraps(method)
    def call(self: Guarded, *positional: Any, **named: Any) -> Any:
        actor = self._actor
        if actor.is_owner and isinstance(access, Read):
            return method(self, *positional, **named)
        bound = shape.bind(self, *positional, **named)
        bound.apply_defaults()
        arguments = bound.arguments
        user = actor.user
        if isinstance(access, Read):
            _check(user, name, arguments)
            if asks_for_principal:
                arguments["principal"] = _principal(user, access, arguments["principal"])
            return method(*bound.args, **bound.kwargs)
        assert isinstance(access, Command)
        if access.routine and actor.is_owner:
            return method(*bound.args, **bound.kwargs)
        shown = {key: value for key, value in arguments.items() if key != "self"}
        database = arguments.get("database")
        with actor.recorded(user, database, name, statement_of(access, shape, shown)):
            _check(user, name, arguments)
            if asks_for_principal:
                arguments["principal"] = _principal(user, access, arguments["principal"])
            return method(*bound.args, **bound.kwargs)

    return call


def _check(user: User, name: str, arguments: Mapping[str, Any]) -> None:
    """Raises LoginFailed, ExecuteDenied."""
    if user.role is None:
        raise LoginFailed(user.name, shlex.quote(user.name))
    least = least_role(name, arguments)
    if user.may(least):
        return
    access = access_to(name)
    procedure = access.procedure if isinstance(access, Command) else f"highwater.{name}"
    schema, _, called = procedure.removeprefix("msdb.").partition(".")
    database = arguments.get("database") or "msdb"
    raise ExecuteDenied(called, database, schema, least, user.name, user.role)


def _principal(user: User, access: Read | Command, given: str | None) -> str | None:
    """Whose rights a call has: of data the user's, of all else nobody's in particular: the role has decided.

    Raises ImpersonationDenied for another principal than one's own, unless by an admin.
    """
    own = user.reads_as
    if given is None or given == own:
        return own if isinstance(access, Read) and access.of_data else None
    if not user.may(Role.ADMIN):
        raise ImpersonationDenied(given)
    return given
