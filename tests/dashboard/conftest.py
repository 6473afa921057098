"""The whole app over a real control database and a real source; no browser, no agent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard import state
from engine.control import ControlDatabase
from engine.engine import Engine
from engine.runtime.home import Home

APP = Path(__file__).parents[2] / "dashboard" / "app.py"
PAGES = ("overview", "tables", "changes", "capture", "cleanup", "collector", "history", "schema", "errors")
PATIENCE = 120
"""Seconds a run may take at most: the machine may be busy."""


class Dashboard:
    """One viewer of the app: each page as it is drawn now, and what it says."""

    def __init__(self, **address: str) -> None:
        self.test = AppTest.from_file(str(APP), default_timeout=PATIENCE)
        for name, value in address.items():
            self.test.query_params[name] = value
        self.test.run()

    def open(self, page: str) -> None:
        """Goes to a page of ``pages/``."""
        self.test.switch_page(f"../pages/{page}.py")
        self.run()

    def run(self) -> None:
        """Draws the page again, over the newest picture; it must not fail."""
        state.changed()
        self.test.run()
        assert not self.test.exception

    def wait(self) -> None:
        """Draws the page again once all that it had begun in the background has ended."""
        for pool in (state.all_operations(), state.dialog_runs()):
            for operation in tuple(pool._operations.values()):
                assert operation.wait(PATIENCE)
        self.run()

    def click(self, key: str) -> None:
        """Clicks a button by its key or, in a form, its label; what it confirms in a dialog is done then."""
        button = next(each for each in self.test.button if key in (each.key, each.label))
        button.click()
        self.run()
        if key.endswith("_confirm"):
            self.wait()

    def field(self, name: str) -> Any:
        """The one field of a form (`FormField`) that is drawn now."""
        test = self.test
        drawn = (*test.number_input, *test.text_input, *test.selectbox, *test.toggle, *test.button_group)
        [found] = [each for each in drawn if re.fullmatch(rf"{name}_[0-9a-f]{{8}}", each.key or "")]
        return found

    @property
    def buttons(self) -> list[str]:
        return [button.label for button in self.test.button]

    @property
    def code(self) -> str:
        """Everything it offers to paste."""
        return "\n".join(code.value for code in self.test.code)

    @property
    def text(self) -> str:
        """Everything the page says in words."""
        parts = (self.test.markdown, self.test.info, self.test.error, self.test.success, self.test.caption)
        return "\n".join(str(element.value) for kind in parts for element in kind)


@pytest.fixture
def engine(control_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The engine that the app uses, on a home of its own where nothing is connected."""
    monkeypatch.setenv("HIGHWATER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HIGHWATER_CONTROL_DSN", control_dsn)
    Home(tmp_path / "home").prepare()
    control = ControlDatabase.open(control_dsn)
    control.migrate()
    control.close()
    st.cache_resource.clear()
    yield state.home_engine()
    state.consoles().close_all()
    state.feed().close()
    state.home_engine().close()
    st.cache_resource.clear()


@pytest.fixture
def dashboard(engine: Engine) -> Dashboard:
    return Dashboard()


@pytest.fixture
def connect(engine: Engine, source_dsn: str) -> Callable[[str], str]:
    """Makes these tables in the source database and connects it as ``hr``."""

    def connected(statements: str) -> str:
        with psycopg.connect(source_dsn, autocommit=True) as connection:
            connection.execute(statements.encode())
        engine.connect("hr", source_dsn)
        return "hr"

    return connected


@pytest.fixture
def tracked(engine: Engine, connect: Callable[[str], str]) -> str:
    """A database with a tracked table; no agent has read its log yet."""
    name = connect("CREATE TABLE department (id int PRIMARY KEY, name text)")
    engine.enable_db(name)
    engine.enable_table(name, "public", "department", role_name=None)
    return name
