"""Delta's jars: there or not, and never half there."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.runtime.jars import COORDINATE, delta_jars, fetch
from engine.runtime.unready import Unready
from engine.settings import Settings


def resolved(folder: Path, coordinate: str, *names: str) -> Path:
    folder.mkdir()
    (folder / "resolved").write_text("\n".join([coordinate, *names]) + "\n")
    return folder


def test_set_up_left_deltas_jars_and_none_that_spark_ships() -> None:
    names = {jar.name for jar in delta_jars(Settings().jars)}
    assert any(name.startswith("io.delta_delta-spark_4.2_2.13-") for name in names)
    assert any(name.startswith("io.delta_delta-storage-") for name in names)
    assert not any("hadoop-client" in name or "jts" in name or "slf4j" in name for name in names)


def test_a_missing_folder_names_the_fix(tmp_path: Path) -> None:
    with pytest.raises(Unready, match="make setup"):
        delta_jars(tmp_path / "jars")


def test_jars_of_another_version_do_not_count(tmp_path: Path) -> None:
    with pytest.raises(Unready):
        delta_jars(resolved(tmp_path / "jars", "io.delta:delta-spark_2.13:3.0.0"))


def test_a_jar_that_was_removed_is_missed(tmp_path: Path) -> None:
    with pytest.raises(Unready):
        delta_jars(resolved(tmp_path / "jars", COORDINATE, "io.delta_delta-storage-4.4.0.jar"))


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    folder = resolved(tmp_path / "jars", COORDINATE, "a.jar")
    (folder / "a.jar").touch()
    assert fetch(folder, {"PATH": ""}) == [folder / "a.jar"]
