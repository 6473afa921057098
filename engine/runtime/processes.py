"""Records of processes that are told from others which got the same pid later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

AGENT_AWAY_SINCE = "agent_away_since"
"""Fact of the supervisor: when it saw that the agent had gone, ISO 8601; missing while that serves."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One process: its pid, when it was recorded, what others must know of it (ports, paths)."""

    pid: int
    started: datetime
    facts: Mapping[str, Any]
    birth: str

    @classmethod
    def of(cls, pid: int, facts: Mapping[str, Any]) -> ProcessRecord:
        """The record of a living process. Raises psutil.NoSuchProcess."""
        born = birth(pid)
        if born is None:
            raise psutil.NoSuchProcess(pid)
        return cls(pid, datetime.now(UTC), dict(facts), born)

    @classmethod
    def read(cls, file: Path) -> ProcessRecord | None:
        """What a file says; None when it is gone or is no record."""
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
            started = datetime.fromisoformat(values["started"])
            return cls(int(values["pid"]), started, dict(values["facts"]), str(values["birth"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def as_json(self) -> str:
        """What `read` reads."""
        return json.dumps(
            {
                "pid": self.pid,
                "started": self.started.isoformat(),
                "birth": self.birth,
                "facts": dict(self.facts),
            }
        )

    @property
    def alive(self) -> bool:
        """Whether this very process runs; a zombie does not."""
        return birth(self.pid) == self.birth


def birth(pid: int) -> str | None:
    """What tells this process from others that have or had its pid; None when it does not run.

    On Linux the boot and the clock ticks since then: unlike a time of day, they stay as they are
    when the clock is set.
    """
    try:
        if _BOOT_ID.exists():
            # The command name, in parentheses, may hold anything: fields are counted from its end.
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            return None if fields[0] in "ZX" else f"{_BOOT_ID.read_text().strip()}/{fields[19]}"
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.0f}"
    except (FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess):
        return None
