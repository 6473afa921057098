"""What pages say when the state of the home can't be read: the truth, and no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard import state
from tests.dashboard.conftest import APP, PATIENCE


def test_a_home_that_does_not_run_is_said_with_the_command_to_start_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIGHWATER_HOME", str(tmp_path))
    st.cache_resource.clear()
    page = AppTest.from_file(str(APP), default_timeout=PATIENCE).run()
    assert not page.exception
    assert "## Highwater does not answer yet" in [text.value for text in page.markdown]
    assert "highwater start" in [code.value for code in page.code]
    assert "There is nothing older to show" in page.error[0].value
    state.feed().close()
    st.cache_resource.clear()


def outage(is_reachable: bool) -> None:
    from datetime import UTC, datetime

    from dashboard.components.problem import outage_banner
    from dashboard.components.verdict import verdict
    from dashboard.snapshot import Snapshot
    from engine.errors import ControlUnreachable
    from engine.monitoring.diagnosis import Verdict
    from engine.monitoring.status import EngineStatus

    taken = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
    status = EngineStatus(taken, Verdict.HEALTHY, (), True, (), ())
    failure: Exception = ValueError("odd") if is_reachable else ControlUnreachable("connection refused.")
    snapshot = Snapshot(taken, status, (), failure)
    outage_banner(snapshot, "2026-11-21 03:00:00.000 UTC")
    verdict(snapshot)


@pytest.mark.parametrize("is_reachable", [True, False])
def test_what_was_found_before_an_outage_is_no_verdict_on_now(is_reachable: bool) -> None:
    page = AppTest.from_function(outage, default_timeout=PATIENCE, args=(is_reachable,)).run()
    heading = page.markdown[0].value
    assert "Unknown" in heading
    assert "Healthy" not in heading
    assert "2026-11-21 03:00:00.000 UTC" in heading
    assert page.caption[0].value.startswith("Then it was: healthy.")


def test_the_banner_names_what_does_not_answer_with_the_command_to_paste() -> None:
    away = AppTest.from_function(outage, default_timeout=PATIENCE, args=(False,)).run()
    assert "The control database does not answer" in away.error[0].value
    assert "Msg 50011" in away.error[0].value
    assert [code.value for code in away.code] == ["highwater start"]
    odd = AppTest.from_function(outage, default_timeout=PATIENCE, args=(True,)).run()
    assert "does not answer" not in odd.error[0].value
    assert "odd" in odd.error[0].value
