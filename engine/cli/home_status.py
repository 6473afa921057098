"""What ``highwater status`` shows: the engine's verdict, databases and the processes of the home.

It answers also when the agent or PostgreSQL is away: that is when somebody asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.engine import Engine
from engine.errors import AgentNotRunning, CdcError
from engine.runtime.home import Home
from engine.settings import Settings

PROCESSES = ("supervisor", "postgres", "agent", "dashboard")


def home_status(settings: Settings) -> dict[str, Any]:
    """``verdict``, ``findings``, ``databases`` as `EngineStatus`, ``home``, and each of `PROCESSES`.

    A process is null when it does not run, else its ``pid``, ``started`` and what it recorded.
    """
    home = Home(settings.home)
    living = home.processes()
    processes = {
        name: {"pid": record.pid, "started": record.started.isoformat(), **record.facts}
        for name, record in living.items()
    }
    return {
        **_engine_status(settings, home),
        "home": str(home.folder),
        **{name: processes.get(name) for name in PROCESSES},
    }


def _engine_status(settings: Settings, home: Home) -> dict[str, Any]:
    if not home.exists:
        return _failing(f"Nothing was ever started in {home.folder}.", "Start it: highwater start")
    try:
        engine = Engine.open(settings)
        try:
            return dict(engine.status().as_dict())
        finally:
            engine.close()
    except AgentNotRunning as error:
        return _failing(str(error), "Start it: highwater start")
    except CdcError as error:
        return _failing(str(error), "Start everything: highwater start")


def _failing(text: str, fix: str) -> dict[str, Any]:
    finding = {"subject": "home", "text": text, "since": None, "fix": fix}
    return {"verdict": "failing", "findings": [finding], "databases": []}


def as_text(status: Mapping[str, Any]) -> str:
    """The same for people."""
    lines = [f"{str(status['verdict']).capitalize()}: {status['home']}"]
    for finding in status["findings"]:
        lines.append(f"  {finding['subject']}: {finding['text']}")
        if finding.get("fix"):
            lines.append(f"    {finding['fix']}")
    lines += [f"  {_process_line(name, status[name])}" for name in PROCESSES]
    return "\n".join([*lines, *(line for database in status["databases"] for line in _database(database))])


def _process_line(name: str, process: Mapping[str, Any] | None) -> str:
    if process is None:
        return f"{name:<10} not running"
    where = f", {process['url']}" if "url" in process else ""
    return f"{name:<10} process {process['pid']}{where}"


def _database(database: Mapping[str, Any]) -> list[str]:
    """A database and whatever is known of it, a line a fact."""
    lines = [f"Database {database.get('name') or database.get('database')}"]
    lines += [
        f"  {key}: {_plain(value)}" for key, value in database.items() if key not in ("name", "database")
    ]
    return lines


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return "; ".join(_plain(inner) for inner in value) or "none"
    return "unknown" if value is None else str(value)
