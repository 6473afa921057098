"""highwater activity and roles: who did what, and who may do what in the dashboard."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from engine.cli.monitoring_commands import FormatOption, write_rows
from engine.cli.row_output import Format
from engine.cli.session import DEFAULT_HOME, HomeOption, opened
from engine.cli.standard_output import pipe_may_close
from engine.model.activity import Action
from engine.model.user import Membership, Role

_NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="What the login provider calls them.")]


def register(app: typer.Typer) -> None:
    """Adds the command ``activity`` and the group ``roles``."""
    app.command()(activity)
    group = typer.Typer(no_args_is_help=True, help="Who may do what among those who log in to the dashboard.")
    group.command("list")(list_)
    group.command("set")(set_)
    group.command()(remove)
    app.add_typer(group, name="roles")


def activity(
    database: Annotated[str | None, typer.Option("-d", "--database", help="Of this database alone.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="By this user alone.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Actions at most, the newest.")] = 20,
    form: FormatOption = Format.TABLE,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Print who changed what, or tried to, newest first: user, time, T-SQL that does the same, and result.

    Secrets in statements are ***. An action that is running, or was cut off, has no end.
    """
    with opened(home) as engine:
        found = engine.activity(limit, database, user)
    shown = found if form is not Format.TABLE else [_in_a_line(action) for action in found]
    with pipe_may_close():
        write_rows(Action, shown, form)


def _in_a_line(action: Action) -> Action:
    """With its statement as one line of a table."""
    return replace(action, statement=" ".join(action.statement.split()))


def list_(form: FormatOption = Format.TABLE, home: HomeOption = DEFAULT_HOME) -> None:
    """Print everybody who has a role, by name."""
    with opened(home) as engine:
        found = engine.users()
    with pipe_may_close():
        write_rows(Membership, found, form)


def set_(
    name: _NameArgument,
    role: Annotated[Role, typer.Argument(help="A viewer reads, an operator runs jobs, an admin may all.")],
    principal: Annotated[
        str | None,
        typer.Option("--principal", metavar="ROLE", help="Role of the sources: its rights are theirs there."),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Give a user a role, or another one."""
    with opened(home) as engine:
        engine.set_role(name, role, principal)
    typer.echo(f"{name} is {role} now.")


def remove(name: _NameArgument, home: HomeOption = DEFAULT_HOME) -> None:
    """Take a user's role: they are refused from the next call on."""
    with opened(home) as engine:
        engine.drop_role(name)
    typer.echo(f"{name} has no role now.")
