"""The console as somebody types at it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from engine.tsql.batches import Batch
from engine.tsql.console import Console, Words


@pytest.fixture(autouse=True)
def no_other_loop() -> Iterator[None]:
    """The browser's tests leave an event loop that rests in the middle of a run; a prompt has its own."""
    resting = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(resting)


class Typed:
    """Takes the batches that a console hands on."""

    database = "shop"

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def run_recorded(self, batch: Batch) -> None:
        self.batches.append(batch)


def typed(tmp_path: Path, text: str) -> list[str]:
    taken: Any = Typed()
    no_engine: Any = None
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(text)
        Console(taken, no_engine, tmp_path / "history").run()
    return [batch.text for batch in taken.batches]


def test_go_runs_what_was_typed_and_exit_leaves(tmp_path: Path) -> None:
    assert typed(tmp_path, "SELECT 1\nSELECT 2\nGO\nPRINT 'x'\ngo 2\nexit\n") == [
        "SELECT 1\nSELECT 2\n",
        "PRINT 'x'\n",
    ]
    assert "+SELECT 2" in (tmp_path / "history").read_text()


def test_the_end_of_input_leaves_and_ctrl_c_begins_anew(tmp_path: Path) -> None:
    assert typed(tmp_path, "SELECT 1\n\x03SELECT 2\nGO\n\x04") == ["SELECT 2\n"]


def test_reset_forgets_what_was_typed_and_quit_leaves_with_it(tmp_path: Path) -> None:
    assert typed(tmp_path, "SELECT 1\nreset\nSELECT 2\nGO\nSELECT 3\n:quit\n") == ["SELECT 2\n"]


def completions(text: str, words: Callable[[], list[str]]) -> list[str]:
    document = Document(text, len(text))
    return [each.text for each in Words(words).get_completions(document, CompleteEvent())]


def test_names_are_completed_with_their_dots_in_any_case() -> None:
    def words() -> list[str]:
        return ["cdc.fn_cdc_get_all_changes_x", "cdc.x_CT", "SELECT", "sys.sp_cdc_help_jobs"]

    assert completions("SELECT * FROM CDC.", words) == ["cdc.fn_cdc_get_all_changes_x", "cdc.x_CT"]
    assert completions("sel", words) == ["SELECT"]
