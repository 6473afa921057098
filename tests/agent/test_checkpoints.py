"""Checkpoints are written beside the capture jobs, whatever happens to a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from engine.agent.checkpoints import Checkpoints
from engine.errors import ControlUnreachable
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


def test_a_database_is_compacted_once_for_all_its_tables_whatever_comes_of_asking(
    publisher, lake_root, monkeypatch
):
    monkeypatch.setattr("engine.agent.checkpoints.CHECKPOINTS_A_COMPACTION", 2)
    asked = []

    def ask(database: str) -> None:
        asked.append(database)
        if len(asked) == 1:
            raise ControlUnreachable("it is away.")
        if len(asked) == 2:
            raise RuntimeError("it has no row for that.")

    paths = [str(lake_root / name) for name in ("a", "b", "c")]
    for path in paths:
        publisher.create(path, pa.schema([("id", pa.int32())]))
    with capture_logs() as logged:
        checkpoints = Checkpoints(publisher, ask, every=1)
        served = follow(checkpoints)
        checkpoints.start()
        for path in paths:
            commit(checkpoints, served, "shop", path)
        assert asked == []
        for path in paths:
            commit(checkpoints, served, "shop", path)
        assert asked == ["shop"] * 3, "asked again where it failed"
        commit(checkpoints, served, "bank", paths[0])
        commit(checkpoints, served, "shop", paths[0])
        assert len(asked) == 3, "counted anew for all tables"
        commit(checkpoints, served, "shop", paths[0])
        assert len(asked) == 4
        checkpoints.stop()
    assert [entry["event"] for entry in logged] == ["compaction not asked for", "checkpoint died"]


def follow(checkpoints: Checkpoints) -> Callable[[], int]:
    """How many due tables have been looked after."""
    count, look_for_next = -1, checkpoints._next

    def counted() -> tuple[str, str] | None:
        nonlocal count
        count += 1
        return look_for_next()

    checkpoints._next = counted  # type: ignore[method-assign]
    return lambda: count


def commit(checkpoints: Checkpoints, served: Callable[[], int], database: str, path: str) -> None:
    """A commit whose checkpoint has been seen to."""
    before = max(served(), 0)
    checkpoints.committed(database, path)
    while served() == before:
        checkpoints._thread.join(0.01)
        assert checkpoints._thread.is_alive()


def test_who_has_waited_longest_comes_first(publisher):
    checkpoints = Checkpoints(publisher, pytest.fail, every=1)
    for path in ("a", "b", "c"):
        checkpoints.committed("shop", path)
    checkpoints.committed("shop", "a")
    assert [checkpoints._next() for _ in range(3)] == [(path, "shop") for path in ("a", "b", "c")]
