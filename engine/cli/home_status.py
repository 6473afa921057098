"""What ``highwater status`` shows: the engine's verdict, its databases and the processes of the home.

It answers also when the agent or PostgreSQL is away: that is when somebody asks.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from engine.engine import Engine
from engine.errors import CdcError
from engine.monitoring.capture_state import duration
from engine.runtime.home import Home
from engine.settings import DEFAULT_HOME, PREFIX, Settings

PROCESSES = ("supervisor", "postgres", "agent", "dashboard")


def home_status(settings: Settings) -> dict[str, Any]:
    """`EngineStatus.as_dict` with the home's folder; the same shape where the control database is away."""
    home = Home(settings.home)
    if not home.exists:
        return _failing(home, f"Nothing was ever started in {home.folder}.", "highwater start")
    engine = Engine.open(settings)
    try:
        return {"home": str(home.folder), **_pasted_in(home, engine.status().as_dict())}
    except CdcError as error:
        return _failing(home, str(error), "highwater start")
    finally:
        engine.close()


def _pasted_in(home: Home, status: dict[str, Any]) -> dict[str, Any]:
    """The same, with fixes that work for this home also where a shell would take another one."""
    if Path(os.environ.get(f"{PREFIX}HOME") or DEFAULT_HOME).expanduser().resolve() == home.folder:
        return status
    captures = [each["capture"] for each in status["databases"] if each["capture"]]
    for place in [*status["findings"], *captures]:
        if "highwater " in place["fix"]:
            place["fix"] = f"export {PREFIX}HOME={shlex.quote(str(home.folder))}; {place['fix']}"
    return status


def _failing(home: Home, text: str, fix: str) -> dict[str, Any]:
    processes = {
        name: {"pid": record.pid, "started": record.started.isoformat(), **record.facts}
        for name, record in home.processes().items()
    }
    agent = processes.get("agent", {"pid": None, "started": None})
    return {
        "home": str(home.folder),
        "verdict": "failing",
        "taken": datetime.now(UTC).isoformat(),
        "agent": {"alive": agent["pid"] is not None, **agent},
        "processes": processes,
        "databases": [],
        "collection_sets": [],
        "findings": [
            {"verdict": "failing", "subject": str(home.folder), "text": text, "since": None, "fix": fix}
        ],
    }


def as_text(status: Mapping[str, Any]) -> str:
    """The same for people: verdict, findings with their fixes, processes, databases."""
    lines = [f"{str(status['verdict']).capitalize()}: home {status['home']}"]
    for finding in status["findings"]:
        lines.append(f"  {finding['subject']}: {finding['text']}")
        if finding["fix"] and finding["fix"] not in finding["text"]:
            lines.append(f"    {finding['fix']}")
    lines.append("Processes")
    lines += [f"  {_process(name, status['processes'].get(name))}" for name in PROCESSES]
    for database in status["databases"]:
        lines += _database(database)
    lines += [_collection_set(each) for each in status["collection_sets"]]
    return "\n".join(lines)


def _process(name: str, process: Mapping[str, Any] | None) -> str:
    if process is None:
        return f"{name:<10} does not run"
    where = "".join(f", {process[url]}" for url in ("url", "metrics_url") if url in process)
    return f"{name:<10} pid {process['pid']}{where}"


def _database(database: Mapping[str, Any]) -> Iterator[str]:
    enabled = "enabled" if database["is_cdc_enabled"] else "not enabled for change data capture"
    yield f"Database {database['name']}: {enabled}"
    if database["unreachable"]:
        yield f"  {database['unreachable']}"
    for job in database["jobs"]:
        yield f"  job {job['name']}: {job['state']} since {job['since']}{_schedule(job)}"
    if not database["is_cdc_enabled"]:
        return
    yield from _capture(database["capture"])
    marks = database["watermarks"]
    yield f"  high watermark {marks['high'] or 'none'}, last commit {marks['last_commit_time'] or 'none'}"
    lag, looked = _known(database["lag_bytes"], " bytes"), _known(database["lag_seconds"], " s ago")
    yield f"  lag {lag}, last look {looked}"
    if slot := database["slot"]:
        yield from _slot(slot, database["forecast"])
    yield from (_client(each) for each in database["clients"])
    for instance in database["capture_instances"]:
        start = instance["start_lsn"] or "not yet met in the log"
        table = f"{instance['source_schema']}.{instance['source_table']}"
        yield f"  {instance['capture_instance']}: {table}, from {start}"


def _client(client: Mapping[str, Any]) -> str:
    reached = client["acknowledged_lsn"] or "has acknowledged nothing"
    words = f"  client {client['client']} of {client['capture_instance']}: {reached}"
    if client["held_since"]:
        return f"{words}, cleanup has waited for it since {client['held_since']}"
    return f"{words}, cleanup comes to it at {client['passed_at']}" if client["passed_at"] else words


def _collection_set(found: Mapping[str, Any]) -> str:
    run, due = found["last_run"], found["next_run"]
    last = f"last snapshot {run['snapshot_time']} {run['outcome']}" if run else "no snapshot yet"
    following = f", next {due}" if due and found["is_running"] else ""
    state = "runs" if found["is_running"] else "is stopped"
    return f"Collection set '{found['name']}' {state}: {last}{following}"


def _capture(capture: Mapping[str, Any]) -> Iterator[str]:
    since = f" since {capture['since']}" if capture["since"] else ""
    yield f"  capture is {capture['state']}{since}: {capture['why']}"
    if capture["fix"]:
        yield f"    {capture['fix']}"


def _slot(slot: Mapping[str, Any], forecast: Mapping[str, Any]) -> Iterator[str]:
    safe = f", {slot['safe_wal_size']:,} more are safe" if slot["safe_wal_size"] is not None else ""
    disk = f", {slot['disk_free_bytes']:,} free on disk" if slot["disk_free_bytes"] is not None else ""
    kept = f"{slot['retained_bytes']:,} bytes of log kept"
    yield f"  slot {slot['slot']}: {slot['wal_status']}, {kept}{safe}{disk}"
    pace = forecast["bytes_per_second"]
    if pace is None:
        return
    ends = (("slot limit", forecast["slot_limit_seconds"]), ("disk full", forecast["disk_full_seconds"]))
    known = [f"{what} in {duration(timedelta(seconds=left))}" for what, left in ends if left is not None]
    when = "" if forecast["is_growing"] else " once capture stops"
    until = f"; {', '.join(known)}{when}" if known else ""
    yield f"  log grows by {pace * 60:,.0f} bytes a minute{until}"


def _schedule(job: Mapping[str, Any]) -> str:
    """When a cleanup job runs next, and how its last run ended."""
    following = f", next run {job['next_run']}" if job.get("next_run") else ""
    last = job.get("last_run")
    return following + (f", last run {last['start_time']} {last['outcome']}" if last else "")


def _known(value: float | None, unit: str) -> str:
    return "unknown" if value is None else f"{value:,.0f}{unit}"
