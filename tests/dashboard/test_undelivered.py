"""What was drawn and not yet sent when a fragment runs: Streamlit's own queue."""

from __future__ import annotations

import subprocess
import sys

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from dashboard import undelivered

DROPPED = """
from tests.dashboard.test_undelivered import drawn_page
queue = drawn_page()
queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["editor"])
print(len(queue.flush()))
"""


def drawn(text: str, place: int, fragment: str = "") -> ForwardMsg:
    message = ForwardMsg()
    message.metadata.delta_path.extend([0, place])
    message.delta.new_element.text.body = text
    message.delta.fragment_id = fragment
    return message


def finished() -> ForwardMsg:
    message = ForwardMsg()
    message.script_finished = ForwardMsg.FINISHED_SUCCESSFULLY
    return message


def drawn_page() -> ForwardMsgQueue:
    """A page of two fragments and a heading, none of it sent."""
    queue = ForwardMsgQueue()
    for message in (drawn("heading", 0), drawn("text", 1, "editor"), drawn("rows", 2, "result"), finished()):
        queue.enqueue(message)
    return queue


def test_a_fragment_that_runs_next_drops_nothing_of_a_page_that_was_drawn() -> None:
    undelivered.install()
    queue = drawn_page()
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["editor"])
    queue.enqueue(drawn("text", 1, "editor"))
    sent = queue.flush()
    assert [message.delta.new_element.text.body for message in sent] == [
        "heading",
        "text",
        "rows",
        "",  # the page is finished; the fragment's run comes behind that
        "text",
    ]
    assert sent[3].script_finished == ForwardMsg.FINISHED_SUCCESSFULLY


def test_a_run_of_the_whole_page_that_comes_next_drops_what_it_draws_anew() -> None:
    undelivered.install()
    queue = drawn_page()
    queue.clear(retain_lifecycle_msgs=True)
    (end,) = queue.flush()
    assert end.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN


def test_streamlit_alone_would_drop_a_part() -> None:
    """Where it no longer does, `undelivered` can go."""
    done = subprocess.run([sys.executable, "-c", DROPPED], capture_output=True, text=True, check=True)
    assert int(done.stdout) == len(drawn_page().flush()) - 1
