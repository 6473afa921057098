"""What runs now, whose it is, and who may end it; the whole app, over a real control database."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard import state
from dashboard.cancelling import missing_role
from dashboard.operations import Operation, Operations, OperationState
from engine.engine import Engine
from engine.model.user import NOBODY, Role, User
from tests.dashboard.conftest import PATIENCE, Dashboard

ANN, BOB = "ann@example.com", "bob@example.com"
POOLS = (state.all_operations, state.dialog_runs, state.console_runs, state.workloads)


@given(role=st.sampled_from([None, *Role]), owner=st.sampled_from([ANN, BOB]))
def test_everybody_with_a_role_cancels_their_own_and_an_admin_anybodys(role: Role | None, owner: str) -> None:
    missing = missing_role(User(ANN, role), owner)
    may = role is Role.ADMIN or (role is not None and owner == ANN)
    assert (missing is None) == may
    assert missing is None or ("somebody else's" in missing) == (owner == BOB)


@pytest.fixture
def ann(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Dashboard]:
    """The page Activity as Ann sees it, who has logged in and has this role."""
    monkeypatch.setattr(state, "who", lambda: ANN)

    def opened(role: str) -> Dashboard:
        engine.set_role(ANN, role)
        dashboard = Dashboard()
        dashboard.open("activity")
        return dashboard

    return opened


@pytest.fixture
def begun(engine: Engine) -> Iterator[Callable[..., Operation]]:
    """Begins work that goes on until it is cancelled."""
    operations: list[Operation] = []

    def work(operation: Operation) -> None:
        operation.step("counting to infinity")
        assert operation.is_cancelled_within(PATIENCE)
        operation.check()

    def begin(
        owner: str,
        pool: Callable[[], Operations] = state.all_operations,
        key: str | None = None,
        rights: str = "",
    ) -> Operation:
        operation = pool().submit(key or f"test of {owner}", f"Work of {owner}", work, owner, rights)
        operations.append(operation)
        while not operation.steps:
            assert operation.is_active
        return operation

    yield begin
    for operation in operations:
        operation.cancel()
        assert operation.wait(PATIENCE)


def cancel_of(dashboard: Dashboard, operation: Operation) -> str | None:
    """Why the button is off; None when it may be pressed."""
    [button] = [each for each in dashboard.test.button if each.key == f"a_cancel_{operation.tag}"]
    return button.help if button.disabled else None


@pytest.mark.parametrize("pool", POOLS)
def test_all_that_runs_is_listed_with_owner_step_and_since(
    ann: Callable[[str], Dashboard], begun: Callable[..., Operation], pool: Callable[[], Operations]
) -> None:
    begun(BOB, pool)
    said = ann("viewer").text.replace("\\", "")
    assert "Running now" in said
    assert f"**Work of {BOB}**: counting to infinity · {BOB} · since 20" in said


def test_an_operator_ends_their_own_and_nobody_elses(
    ann: Callable[[str], Dashboard], begun: Callable[..., Operation]
) -> None:
    mine, other = begun(ANN), begun(BOB)
    dashboard = ann("operator")
    assert cancel_of(dashboard, other) == "It is somebody else's. Needs the role admin; yours is operator."
    assert cancel_of(dashboard, mine) is None
    dashboard.click(f"a_cancel_{mine.tag}")
    assert mine.wait(PATIENCE)
    assert mine.state is OperationState.CANCELLED
    assert not other.is_ending
    dashboard.run()
    assert f"Work of {ANN}" not in dashboard.text


def test_an_admin_ends_anybodys(ann: Callable[[str], Dashboard], begun: Callable[..., Operation]) -> None:
    other = begun(BOB)
    ann("admin").click(f"a_cancel_{other.tag}")
    assert other.wait(PATIENCE)
    assert other.state is OperationState.CANCELLED


def test_a_viewer_ends_their_own_reads_and_is_told_which_role_the_rest_takes(
    ann: Callable[[str], Dashboard], begun: Callable[..., Operation]
) -> None:
    mine, other = begun(ANN), begun(BOB)
    dashboard = ann("viewer")
    assert cancel_of(dashboard, mine) is None
    assert cancel_of(dashboard, other) == "It is somebody else's. Needs the role admin; yours is viewer."


def test_where_it_is_followed_the_same_roles_hold_as_in_the_list(
    ann: Callable[[str], Dashboard], begun: Callable[..., Operation]
) -> None:
    begun(BOB, key="collect:1", rights=f"as {NOBODY}")
    dashboard = ann("operator")
    dashboard.open("collector")
    [button] = [each for each in dashboard.test.button if each.key == "o_progress_cancel"]
    assert button.disabled
    assert button.help == "It is somebody else's. Needs the role admin; yours is operator."


def test_a_button_that_was_drawn_before_the_role_was_taken_does_nothing(
    ann: Callable[[str], Dashboard], begun: Callable[..., Operation], engine: Engine
) -> None:
    other = begun(BOB)
    dashboard = ann("admin")
    assert cancel_of(dashboard, other) is None
    engine.set_role(ANN, "operator")
    dashboard.click(f"a_cancel_{other.tag}")
    assert not other.is_ending
    assert cancel_of(dashboard, other) is not None


def test_a_script_of_the_console_is_ended_with_its_statement(
    ann: Callable[[str], Dashboard], engine: Engine, connect: Callable[[str], str]
) -> None:
    connect("SELECT 1")
    console = state.consoles().open(engine, "hr", lambda: True)
    script = "BEGIN TRANSACTION; WAITFOR DELAY '23:00:00'; PRINT 'never'"
    run = state.console_runs().submit("script", "Console", lambda each: console.execute(script, 1, each), ANN)
    while not run.steps:
        assert run.is_active
    ann("operator").click(f"a_cancel_{run.tag}")
    assert run.wait(PATIENCE)
    assert [said.text for said in console.run.messages] == ["Query was canceled by user."]
    state.consoles().close(console.token)
