"""Homes for tests that kill processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.agent_home import AgentHome


@pytest.fixture
def new_home(tmp_path: Path) -> Iterator[Callable[..., AgentHome]]:
    """Makes homes with a PostgreSQL of their own; keyword arguments are settings of the agent."""
    made: list[AgentHome] = []

    def make(**settings: str) -> AgentHome:
        made.append(AgentHome(tmp_path / f"home{len(made)}", **settings))
        return made[-1]

    yield make
    for home in made:
        home.close()
