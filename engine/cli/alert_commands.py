"""highwater alerts: list, hook, test."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Annotated

import typer

from engine.cli.job_commands import moment
from engine.cli.session import DEFAULT_HOME, HomeOption, opened
from engine.model.alert import Alert, AlertHook


def register(app: typer.Typer) -> None:
    """Adds the group ``alerts``."""
    group = typer.Typer(no_args_is_help=True, help="What was told to a command or a webhook, and to whom.")
    group.command("list")(list_)
    group.command()(hook)
    group.command("test")(try_hook)
    app.add_typer(group, name="alerts")


def list_(
    limit: Annotated[int, typer.Option("--limit", min=1, help="Alerts at most, the newest.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object an alert.")] = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Show alerts, newest first, and how the hook took them."""
    with opened(home) as engine:
        found = engine.alerts(limit)
    for alert in found:
        typer.echo(alert_as_json(alert) if as_json else alert_as_text(alert))


def hook(
    command: Annotated[
        str | None, typer.Option(help="A program with its arguments; it gets JSON on its standard input.")
    ] = None,
    webhook: Annotated[str | None, typer.Option(help="A URL that gets JSON by POST.")] = None,
    off: Annotated[bool, typer.Option("--off", help="Tell nobody.")] = False,
    lag_seconds: Annotated[int | None, typer.Option(help="Tell when capture is further behind.")] = None,
    stall_seconds: Annotated[int | None, typer.Option(help="Tell when nothing is published longer.")] = None,
    slot_bytes: Annotated[int | None, typer.Option(help="Tell when the source keeps more log.")] = None,
    timeout_seconds: Annotated[int | None, typer.Option(help="How long the hook may take.")] = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Show the alert hook, or set what is given.

    The agent tells it of failures, stall, lag, slot and collector, `highwater start` of an agent that stays
    away.
    """
    if sum([command is not None, webhook is not None, off]) > 1:
        raise typer.BadParameter("give one of --command, --webhook and --off")
    with opened(home) as engine:
        now = engine.alert_hook()
        wanted = replace(
            now,
            lag_seconds=_given(lag_seconds, now.lag_seconds),
            stall_seconds=_given(stall_seconds, now.stall_seconds),
            slot_bytes=_given(slot_bytes, now.slot_bytes),
            timeout_seconds=_given(timeout_seconds, now.timeout_seconds),
        )
        if off or command is not None or webhook is not None:
            wanted = replace(wanted, command=command, webhook=webhook)
        if wanted != now:
            engine.set_alert_hook(wanted)
            wanted = engine.alert_hook()
    typer.echo(hook_as_text(wanted))


def try_hook(home: HomeOption = DEFAULT_HOME) -> None:
    """Tell the hook of a test, from this machine."""
    with opened(home) as engine:
        typer.echo(f"The hook took it: {engine.test_alert_hook()}.")


def _given(value: int | None, now: int) -> int:
    return now if value is None else value


def hook_as_text(hook: AlertHook) -> str:
    """Who is told, and from where on."""
    who = f"webhook {hook.webhook}" if hook.webhook else "nobody"
    who = f"command {hook.command}" if hook.command else who
    return (
        f"Alerts go to: {who}\n"
        f"  lag over {hook.lag_seconds} s, stall over {hook.stall_seconds} s, slot over {hook.slot_bytes} "
        f"bytes, failures; the hook may take {hook.timeout_seconds} s"
    )


def alert_as_text(alert: Alert) -> str:
    """A line on an alert, and one on how each of its events was told."""
    end = "" if alert.cleared_at is None else f" to {moment(alert.cleared_at)}"
    lines = [f"{alert.database or 'home'} {alert.kind} {moment(alert.raised_at)}{end}: {alert.text}"]
    lines.append(f"  raised: {alert.raised_told or 'not told yet'}")
    if alert.cleared_at is not None:
        lines.append(f"  cleared: {alert.cleared_told or 'not told yet'}")
    return "\n".join(lines)


def alert_as_json(alert: Alert) -> str:
    """An alert as one line of JSON, times ISO 8601."""
    return json.dumps(asdict(alert), default=lambda value: value.isoformat(), ensure_ascii=False)
