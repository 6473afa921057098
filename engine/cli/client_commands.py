"""highwater client register, ack, list, drop."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Annotated

import typer

from engine.cli.job_commands import enabled_names, moment, rows_text
from engine.cli.lsn_text import parse_lsn
from engine.cli.session import DEFAULT_HOME, DatabaseOption, HomeOption, opened
from engine.errors import ExpiryInvalid
from engine.model.client import Client, ClientLag

NameArgument = Annotated[str, typer.Argument(help="What the client is called.")]
InstanceOption = Annotated[
    str, typer.Option("-c", "--capture-instance", metavar="INSTANCE", help="Capture instance that it reads.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a client.")]

NEVER = "never"
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LENGTH = re.compile(r"(\d{1,6})([smhd])")


def register(app: typer.Typer) -> None:
    """Adds the group ``client``."""
    group = typer.Typer(no_args_is_help=True, help="Consumers that cleanup waits for.")
    group.command("register")(register_client)
    group.command()(ack)
    group.command("list")(list_clients)
    group.command()(drop)
    app.add_typer(group, name="client")


def register_client(
    name: NameArgument,
    capture_instance: InstanceOption,
    expires_after: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Dropped when nothing is heard of it for so long: 90m, 36h, 7d, never."
        ),
    ] = "7d",
    database: DatabaseOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Let cleanup wait for a client; one that is registered keeps its place and gets the new limit."""
    with opened(home) as engine:
        source = engine.database(database).name
        client = engine.register_client(source, name, capture_instance, parse_length(expires_after))
        typer.echo(f"Client '{name}' of {capture_instance} is registered{_begins(client)}")


def ack(
    name: NameArgument,
    lsn: Annotated[str, typer.Argument(help="It has every change up to here: 0x and 20 hex digits.")],
    capture_instance: InstanceOption,
    database: DatabaseOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Say how far a client has come: cleanup may take what is below."""
    with opened(home) as engine:
        source = engine.database(database).name
        client = engine.acknowledge(source, name, capture_instance, parse_lsn(lsn))
        typer.echo(f"Client '{name}' of {capture_instance} has acknowledged {client.acknowledged_lsn}.")


def drop(
    name: NameArgument,
    capture_instance: InstanceOption,
    database: DatabaseOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Forget a client: cleanup no longer waits for it."""
    with opened(home) as engine:
        engine.drop_client(engine.database(database).name, name, capture_instance)
        typer.echo(f"Client '{name}' of {capture_instance} is dropped.")


def list_clients(
    capture_instance: Annotated[
        str | None,
        typer.Option("-c", "--capture-instance", metavar="INSTANCE", help="Only of this capture instance."),
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Show clients and how far they are behind: of one database, or of all without -d."""
    with opened(home) as engine:
        for name in enabled_names(engine, database):
            for lag in engine.client_lags(name, capture_instance):
                typer.echo(json.dumps(as_dict(lag), ensure_ascii=False) if as_json else as_text(lag))


def parse_length(text: str) -> timedelta | None:
    """A length of time, None for never. Raises ExpiryInvalid."""
    if text.strip().lower() == NEVER:
        return None
    match = _LENGTH.fullmatch(text.strip().lower())
    if match is None or not int(match[1]):
        raise ExpiryInvalid(text)
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def length_text(seconds: float) -> str:
    """A length of time in the largest units that say something: ``3 d 4 h``, ``12 min``, ``7 s``."""
    days, rest = divmod(int(seconds), 86400)
    hours, rest = divmod(rest, 3600)
    minutes, secs = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (secs, "s")]
    told = [f"{count} {unit}" for count, unit in parts if count][:2]
    return " ".join(told) or "0 s"


def as_text(lag: ClientLag) -> str:
    """A line on where a client is, one on what becomes of it and, where cleanup waits for it, one on that."""
    client = lag.client
    reached = (
        "has acknowledged nothing" if client.acknowledged_lsn is None else f"at {client.acknowledged_lsn}"
    )
    lines = [
        f"{client.name} of {client.database}.{client.capture_instance}: {reached}{_behind(lag)}",
        f"  heard of {moment(client.acknowledged_at)}, {_expiry(client)}",
    ]
    if client.held_since is not None:
        lines.append(f"  cleanup has waited for it since {moment(client.held_since)}")
    elif lag.forecast.passed_at is not None:
        lines.append(f"  at its pace cleanup waits for it from {moment(lag.forecast.passed_at)}")
    return "\n".join(lines)


def as_dict(lag: ClientLag) -> dict[str, object]:
    """A client for ``--json``: times ISO 8601, log in bytes, durations in seconds."""
    client = lag.client
    limit = client.expires_after
    return {
        "client": client.name,
        "database": client.database,
        "capture_instance": client.capture_instance,
        "acknowledged_lsn": None if client.acknowledged_lsn is None else str(client.acknowledged_lsn),
        "acknowledged_time": _iso(lag.acknowledged_time),
        "acknowledged_at": _iso(client.acknowledged_at),
        "registered_at": _iso(client.registered_at),
        "lag_bytes": lag.lag_bytes,
        "lag_rows": lag.lag_rows,
        "lag_seconds": lag.lag_seconds,
        "expires_after": None if limit is None else int(limit.total_seconds()),
        "expires_at": _iso(lag.forecast.expires_at),
        "passed_at": _iso(lag.forecast.passed_at),
        "holds_cleanup": client.holds_cleanup,
        "held_since": _iso(client.held_since),
    }


def waits(clients: Iterable[Client]) -> Iterator[str]:
    """Whom cleanup waits for, a line each."""
    for client in clients:
        if client.held_since is not None:
            yield (
                f"waits for client '{client.name}' of {client.capture_instance},"
                f" at {client.acknowledged_lsn}, since {moment(client.held_since)}"
            )


def _begins(client: Client) -> str:
    if client.acknowledged_lsn is None:
        return "; it begins where the capture job meets the instance in the log."
    return f" at {client.acknowledged_lsn}."


def _behind(lag: ClientLag) -> str:
    if lag.lag_rows is None or lag.lag_bytes is None:
        return ""
    if lag.lag_rows == 0:
        return ", nothing behind"
    time = "" if lag.lag_seconds is None else f" and {length_text(lag.lag_seconds)}"
    return f", {rows_text(lag.lag_rows)}{time} behind ({lag.lag_bytes:,} bytes of log)"


def _expiry(client: Client) -> str:
    if client.expires_at is None or client.expires_after is None:
        return "never expires"
    limit = length_text(client.expires_after.total_seconds())
    return f"expires after {limit} of silence: {moment(client.expires_at)}"


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
