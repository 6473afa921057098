"""Entries of the Delta log of a table in a local folder, read without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Action = Mapping[str, Any]
"""An action of Delta's log, as JSON."""


def entry_file(folder: Path, version: int) -> Path:
    """The file of a version's entry; folder: the table's."""
    return folder / "_delta_log" / f"{version:020d}.json"


def actions_of(folder: Path, version: int) -> list[Action]:
    """What a version did. Raises FileNotFoundError where its entry is not there, or not any more."""
    text = entry_file(folder, version).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line]
