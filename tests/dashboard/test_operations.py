"""Background work: watched, cancelled, never a traceback on a page."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from dashboard.operations import Operation, Operations, OperationState
from tests.dashboard.conftest import PATIENCE


@pytest.fixture
def operations() -> Iterator[Operations]:
    made = Operations(threads=2)
    yield made
    made.close()


def ended(operation: Operation) -> Operation:
    """Waits until it is no longer active."""
    assert operation.wait(PATIENCE)
    return operation


def test_a_result_is_kept_under_its_key(operations: Operations) -> None:
    operation = ended(operations.submit("a", "Adding", lambda work: 1 + 1))
    assert operation.result == 2
    assert operations.get("a") is operation


def test_an_active_operation_is_not_started_twice(operations: Operations) -> None:
    go = threading.Event()
    first = operations.submit("a", "Waiting", lambda work: go.wait(PATIENCE))
    assert operations.submit("a", "Waiting", lambda work: None) is first
    go.set()
    assert ended(first).result is True


def test_an_error_is_kept_for_the_page(operations: Operations) -> None:
    def fail(_work: Operation) -> None:
        raise ValueError("no such thing")

    operation = ended(operations.submit("a", "Failing", fail))
    assert operation.state is OperationState.FAILED
    assert str(operation.error) == "no such thing"


def test_cancelled_work_ends_at_its_next_step(operations: Operations) -> None:
    started, go = threading.Event(), threading.Event()

    def work(operation: Operation) -> str:
        started.set()
        go.wait(PATIENCE)
        operation.step("goes on")
        return "went on"

    operation = operations.submit("a", "Working", work)
    started.wait(PATIENCE)
    operation.cancel()
    go.set()
    assert ended(operation).state is OperationState.CANCELLED
    assert operation.result is None


def test_what_waits_elsewhere_is_stopped_by_its_own_means(operations: Operations) -> None:
    stopped, inside = threading.Event(), threading.Event()

    def work(operation: Operation) -> str:
        with operation.stopped_by(stopped.set):
            inside.set()
            assert stopped.wait(PATIENCE)
        return "what there was so far"

    operation = operations.submit("a", "Working", work)
    assert inside.wait(PATIENCE)
    operation.cancel()
    assert ended(operation).result == "what there was so far"
    assert not operation.is_ending


def test_what_was_cancelled_before_is_not_begun(operations: Operations) -> None:
    go, stopped = threading.Event(), threading.Event()

    def work(operation: Operation) -> str:
        assert go.wait(PATIENCE)
        with operation.stopped_by(stopped.set):
            return "begun"

    operation = operations.submit("a", "Working", work)
    operation.cancel()
    assert operation.is_ending
    go.set()
    assert ended(operation).state is OperationState.CANCELLED
    assert not stopped.is_set()
