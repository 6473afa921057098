"""The console of a tab over a real source: results, messages, transactions, cancelling, isolation."""

from __future__ import annotations

import csv
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard import console as module
from dashboard import consoles as consoles_module
from dashboard.console import Run, TabConsole
from dashboard.consoles import AWAY, Consoles
from dashboard.operations import Cancelled, Operation
from engine.engine import Engine
from engine.errors import ControlUnreachable
from engine.sources.sql_session import ResultColumn
from tests.dashboard.conftest import PATIENCE, Dashboard

cells = st.none() | st.text() | st.integers() | st.booleans() | st.binary(max_size=4)
texts = st.none() | st.text(st.characters(exclude_categories=["Cs", "Cc"]))


@pytest.fixture
def consoles(engine: Engine, connect: Callable[[str], str]) -> Iterator[Callable[[], TabConsole]]:
    """Opens consoles of a database with a table."""
    connect("CREATE TABLE item (id int PRIMARY KEY, name text)")
    opened, known = [], Consoles()

    def open_() -> TabConsole:
        opened.append(known.open(engine, "hr", lambda: True))
        return opened[-1]

    yield open_
    for console in opened:
        known.close(console.token)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What is put here is added to the time of consoles."""
    late = [0.0]
    shifted = SimpleNamespace(monotonic=lambda: time.monotonic() + late[0])
    monkeypatch.setattr(consoles_module, "time", shifted)
    return late


def run(console: TabConsole, script: str, line: int = 1) -> Run:
    return console.execute(script, line, Operation("test", "test"))


def said(outcome: Run) -> list[str]:
    return [each.text for each in outcome.messages]


def test_results_and_messages_come_as_the_server_prints_them(consoles: Callable[[], TabConsole]) -> None:
    lines = ("INSERT public.item VALUES (1, 'a'), (2, NULL)", "SELECT * FROM public.item", "PRINT 'done'")
    outcome = run(consoles(), "\n".join([*lines, "SELECT 1/0"]))
    assert outcome.results[0].columns == ("id", "name")
    assert outcome.results[0].rows == [["1", "a"], ["2", None]]
    assert said(outcome)[:3] == ["(2 rows affected)", "(2 rows affected)", "done"]
    error = "Msg 8134, Level 16, State 1, Line 4\nDivide by zero error encountered."
    assert said(outcome)[3] == error
    assert [each.is_error for each in outcome.messages] == [False, False, False, True]


def test_the_lines_of_a_selection_are_those_of_the_editor(consoles: Callable[[], TabConsole]) -> None:
    (message,) = said(run(consoles(), "SELECT * FROM nowhere", line=7))
    assert message.startswith("Msg 208, Level 16, State 1, Line 7\n")


def test_a_transaction_goes_on_in_the_next_run_and_other_tabs_do_not_see_it(
    consoles: Callable[[], TabConsole],
) -> None:
    mine, other = consoles(), consoles()
    run(mine, "BEGIN TRANSACTION; INSERT public.item VALUES (1, 'mine')")
    assert run(other, "SELECT count(*) FROM public.item").results[0].rows == [["0"]]
    assert run(mine, "SELECT @@TRANCOUNT").results[0].rows == [["1"]]
    run(mine, "COMMIT")
    assert run(other, "SELECT count(*) FROM public.item").results[0].rows == [["1"]]


@pytest.mark.parametrize("script", ["WAITFOR DELAY '23:00:00'", "WHILE 1 = 1 PRINT 'on and on'"])
def test_what_lasts_is_ended_by_cancel_and_the_session_goes_on(
    consoles: Callable[[], TabConsole], script: str
) -> None:
    console = consoles()
    before, ended = console.run, threading.Event()
    outcomes: list[Run] = []

    def work() -> None:
        outcomes.append(run(console, f"BEGIN TRANSACTION; {script}; PRINT 'never'"))
        ended.set()

    threading.Thread(target=work, daemon=True).start()
    while console.run is before:
        assert not ended.is_set()
    console.cancel()
    assert ended.wait(PATIENCE)
    assert said(outcomes[0])[-1] == "Query was canceled by user."
    assert "never" not in said(outcomes[0])
    assert not outcomes[0].has_failed
    assert run(console, "SELECT @@TRANCOUNT").results[0].rows in ([["1"]], [["0"]])


def test_a_long_result_is_shown_in_part_and_kept_whole_up_to_a_bound(
    consoles: Callable[[], TabConsole], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SHOWN", 3)
    monkeypatch.setattr(module, "KEPT", 5)
    console = consoles()
    run(console, "INSERT public.item VALUES (1,''), (2,''), (3,''), (4,''), (5,''), (6,'')")
    result = run(console, "SELECT id FROM public.item ORDER BY id").results[0]
    assert (len(result.rows), result.count, result.is_cut) == (3, 5, True)
    assert list(result.lines("csv")) == ["id\n", "1\n", "2\n", "3\n", "4\n", "5\n"]
    assert run(console, "SELECT 1").results[0].rows == [["1"]]
    assert not result.file.exists(), "files of an earlier run are gone"


@given(rows=st.lists(st.tuples(texts, texts)))
def test_files_have_every_row_and_tell_null_from_an_empty_text(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str | None, str | None]]
) -> None:
    sink = Run(tmp_path_factory.mktemp("run"))
    names = [ResultColumn("a", "nvarchar"), ResultColumn('b "c"', "nvarchar")]
    assert sink.rows(names, rows) == len(rows)
    (result,) = sink.results
    read = list(csv.reader(line for line in result.lines("csv")))
    assert read == [["a", 'b "c"'], *([value or "" for value in row] for row in rows)]
    assert [json.loads(line) for line in result.lines("jsonl")] == [
        {"a": first, 'b "c"': second} for first, second in rows
    ]


@given(row=st.lists(cells, min_size=1))
def test_any_value_has_a_text(tmp_path_factory: pytest.TempPathFactory, row: list[object]) -> None:
    sink = Run(tmp_path_factory.mktemp("run"))
    sink.rows([ResultColumn("", "x") for _ in row], [row])
    assert [cell is None for cell in sink.results[0].rows[0]] == [value is None for value in row]


def test_results_of_a_closed_console_are_gone(engine: Engine, connect: Callable[[str], str]) -> None:
    connect("SELECT 1")
    known = Consoles()
    console = known.open(engine, "hr", lambda: True)
    outcome = run(console, "SELECT 1")
    folder: Path = outcome.folder
    assert known.result(console.token, outcome.mark, 0) is outcome.results[0]
    assert known.result(console.token, outcome.mark, 1) is None
    assert known.result(console.token, "another run", 0) is None
    known.close(console.token)
    assert known.result(console.token, outcome.mark, 0) is None
    assert not folder.exists()


def test_a_console_outlasts_a_lost_connection_but_not_its_tab(
    engine: Engine, connect: Callable[[str], str], clock: list[float]
) -> None:
    connect("SELECT 1")
    browsers = {"ours": True, "theirs": True}
    known = Consoles()
    ours = known.open(engine, "hr", lambda: browsers["ours"])
    theirs = known.open(engine, "hr", lambda: browsers["theirs"])
    for console in (ours, theirs):
        run(console, "BEGIN TRANSACTION")
    for ours_is_there, seconds in ((True, 1000), (False, AWAY - 1), (True, 1), (False, AWAY - 1), (True, 1)):
        browsers["ours"] = ours_is_there
        clock[0] += seconds
        known.close_left()
    assert known.get(ours.token) is ours
    assert run(ours, "SELECT @@TRANCOUNT").results[0].rows == [["1"]]
    browsers["theirs"] = False
    clock[0] += AWAY + 1
    known.close_left()
    assert known.get(theirs.token) is None
    assert known.get(ours.token) is ours
    known.close_all()
    assert known.get(ours.token) is None


def test_a_console_that_has_ended_runs_nothing_and_opens_no_session(
    consoles: Callable[[], TabConsole],
) -> None:
    console = consoles()
    run(console, "BEGIN TRANSACTION")
    console.close()
    with pytest.raises(Cancelled):
        run(console, "INSERT public.item VALUES (9, 'outside')")
    assert run(consoles(), "SELECT COUNT(*) FROM public.item").results[0].rows == [["0"]]


def test_a_console_that_does_not_close_keeps_no_other_open(
    engine: Engine, connect: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect("SELECT 1")
    known = Consoles()
    first, second = (known.open(engine, "hr", lambda: True) for _ in range(2))
    folders = [run(console, "SELECT 1").folder for console in (first, second)]
    end = first._session.close
    monkeypatch.setattr(first._session, "close", Mock(side_effect=[ControlUnreachable("it is away")]))
    known.close_all()
    assert not any(folder.exists() for folder in folders)
    end()


def test_completion_and_snippets_know_what_is_there(consoles: Callable[[], TabConsole]) -> None:
    console = consoles()
    assert {"public.item", "sys.sp_cdc_enable_db", "SELECT"} <= set(console.words())
    snippet = console.snippets()["sp_cdc_enable_table"]
    assert snippet.startswith("EXEC sys.sp_cdc_enable_table\n    @source_schema = N'',")
    for call in console.snippets().values():
        assert not any("Incorrect syntax" in text for text in said(run(console, f"IF 1 = 0 {call}"))), call


def test_the_page_says_what_statements_mean(dashboard: Dashboard, connect: Callable[[str], str]) -> None:
    connect("SELECT 1")
    dashboard.open("console")
    assert "Statements mean database **hr**" in dashboard.text
    assert [title.value for title in dashboard.test.title] == ["Console"]
