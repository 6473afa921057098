"""What a timer asks for while the next page is being drawn: Streamlit's own server and protocol."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests
from websockets.sync.client import ClientConnection, connect

from dashboard import late_reruns
from engine.runtime.ports import free_port

SECONDS = 60
"""How long the server may take to start or answer: only what is wrong takes that long."""


class Browser:
    """What a browser says and hears, as messages."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    def asks(self, page: str = "", fragment: str = "") -> None:
        """For a run of a page, or for a tick of a fragment on it."""
        message = BackMsg()
        message.rerun_script.page_script_hash = page
        message.rerun_script.fragment_id = fragment
        message.rerun_script.is_auto_rerun = bool(fragment)
        self._connection.send(message.SerializeToString())

    def hears(self, is_last: Callable[[ForwardMsg], bool]) -> list[ForwardMsg]:
        """All messages up to the first of that kind."""
        heard: list[ForwardMsg] = []
        while not heard or not is_last(heard[-1]):
            message = ForwardMsg()
            message.ParseFromString(self._connection.recv(SECONDS))  # type: ignore[arg-type]
            heard.append(message)
        return heard


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    port = free_port()
    server = subprocess.Popen([sys.executable, "-m", "tests.dashboard.two_pages", str(port)])
    try:
        yield f"ws://127.0.0.1:{port}/_stcore/stream"
    finally:
        server.terminate()
        server.wait(SECONDS)


@pytest.fixture
def browser(address: str) -> Iterator[Browser]:
    connection = _connected(address)
    with connection:
        yield Browser(connection)


def _connected(address: str) -> ClientConnection:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return connect(address, subprotocols=["streamlit"], max_size=None)  # type: ignore[list-item]
        except OSError:
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.05)


def _is_finished(message: ForwardMsg) -> bool:
    return message.HasField("script_finished")


def _draws(text: str) -> Callable[[ForwardMsg], bool]:
    return lambda message: message.delta.new_element.text.body == text


def _opened(browser: Browser) -> tuple[dict[str, str], str]:
    """The first page is drawn: pages by title, and the fragment with the timer."""
    browser.asks()
    heard = browser.hears(_is_finished)
    pages = next(each.navigation.app_pages for each in heard if each.HasField("navigation"))
    fragment = next(each.auto_rerun.fragment_id for each in heard if each.HasField("auto_rerun"))
    return {page.page_name: page.page_script_hash for page in pages}, fragment


def test_a_tick_of_the_shown_page_runs(browser: Browser) -> None:
    pages, fragment = _opened(browser)
    browser.asks(pages["First"], fragment)
    heard = browser.hears(_is_finished)
    runs = [list(each.metadata.run.fragment_ids) for each in heard if each.HasField("new_session")]
    assert runs == [[fragment]]


def test_a_tick_of_the_page_before_does_not_run_behind_the_page_that_is_drawn(browser: Browser) -> None:
    pages, fragment = _opened(browser)
    browser.asks(pages["Second"])
    browser.hears(_draws("tick"))  # the second page is under way: it shares the part, and its name
    browser.asks(pages["First"], fragment)
    browser.hears(_is_finished)
    browser.asks(pages["Second"])
    heard = browser.hears(_is_finished)
    assert {each.new_session.page_script_hash for each in heard if each.HasField("new_session")} == {
        pages["Second"]
    }


def test_a_tick_of_the_page_before_does_not_turn_a_run_that_waits_back_to_it() -> None:
    late_reruns.install()
    requests = ScriptRequests()
    requests.request_rerun(RerunData(page_script_hash="second", query_string="b=2"))
    tick = RerunData(page_script_hash="first", query_string="a=1", fragment_id="ticking", is_auto_rerun=True)
    requests.request_rerun(tick)
    waiting = requests.on_scriptrunner_ready()
    assert waiting.rerun_data == RerunData(page_script_hash="second", query_string="b=2")
