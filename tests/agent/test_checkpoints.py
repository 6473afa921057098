"""Checkpoints are written beside the capture jobs, whatever happens to a table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from engine.agent.checkpoints import Checkpoints
from engine.lake.publisher import Publisher


@pytest.fixture
def publisher(spark):
    return Publisher(spark)


def damaged(publisher: Publisher, path: Path) -> str:
    """A table whose log can no longer be read."""
    publisher.create(str(path), pa.schema([("id", pa.int32())]))
    (path / "_delta_log" / f"{1:020d}.json").write_text("no JSON at all\n")
    return str(path)


def wait_for(count: int, logged: list[object], checkpoints: Checkpoints) -> None:
    """Waits for so many log lines; fails when the thread that writes them ends."""
    while len(logged) < count:
        checkpoints._thread.join(0.05)
        assert checkpoints._thread.is_alive()


def test_a_table_whose_checkpoint_cannot_be_written_does_not_end_the_others(publisher, lake_root):
    with capture_logs() as logged:
        checkpoints = Checkpoints(publisher, pytest.fail, every=1)
        path = damaged(publisher, lake_root / "a")
        checkpoints.committed("shop", path)
        checkpoints.start()
        wait_for(1, logged, checkpoints)
        checkpoints.committed("shop", path)
        wait_for(2, logged, checkpoints)
        checkpoints.stop()
    assert {entry["event"] for entry in logged} == {"checkpoint not written"}
    assert "\n" not in logged[0]["error"]
