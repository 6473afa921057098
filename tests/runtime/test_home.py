"""The home: its layout, its secrets, its records of processes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import HomeTooNew
from engine.runtime.home import Home
from engine.runtime.processes import ProcessRecord
from engine.runtime.unready import Unready


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    return made


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_home_is_known_by_its_version(home: Home) -> None:
    assert json.loads((home.folder / "home.json").read_text()) == {"version": 1}
    assert home.exists


def test_preparing_twice_keeps_everything(home: Home) -> None:
    token = home.connect_token
    Home(home.folder).prepare()
    assert Home(home.folder).connect_token == token


def test_the_home_of_a_newer_version_is_left_alone(home: Home) -> None:
    (home.folder / "home.json").write_text('{"version": 2}')
    with pytest.raises(HomeTooNew, match="newer version"):
        home.prepare()


def test_a_damaged_version_file_is_named(home: Home) -> None:
    (home.folder / "home.json").write_text("")
    with pytest.raises(Unready, match=r"home\.json"):
        home.prepare()


def test_somebody_elses_folder_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(Unready, match=r"thesis\.tex"):
        Home(tmp_path).prepare()
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_settings_may_be_written_before_the_first_start(tmp_path: Path) -> None:
    (tmp_path / "highwater.toml").write_text("port = 8502\n")
    Home(tmp_path).prepare()


def test_a_place_where_no_folder_can_be_made_is_refused_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unready, match="--home"):
        Home(tmp_path / "file" / "home").prepare()


def test_too_little_disk_space_is_said_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(Unready, match="MiB free"):
        Home(tmp_path / "home").prepare(minimum_free=2**60)
    assert not (tmp_path / "home").exists()


def test_secrets_are_for_their_owner_alone(home: Home) -> None:
    home.keep_secret("shop", "geheim")
    assert mode(home.secrets) == 0o700
    assert home.connect_token
    assert {mode(file) for file in home.secrets.iterdir()} == {0o600}


def test_what_others_may_not_read_is_for_the_user_alone(home: Home) -> None:
    assert {mode(folder) for folder in (home.lake, home.run, home.log, home.secrets)} == {0o700}


def test_a_forgotten_secret_is_gone(home: Home) -> None:
    home.keep_secret("shop", "geheim")
    home.forget_secret("shop")
    assert home.secret("shop") is None


@given(names=st.sets(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128), max_size=5))
def test_any_name_keeps_a_secret_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, names: set[str]
) -> None:
    home = Home(tmp_path_factory.mktemp("secrets") / "home")
    for name in names:
        home.keep_secret(name, f"of {name}")
    assert {name: home.secret(name) for name in names} == {name: f"of {name}" for name in names}
    assert all(file.parent == home.secrets for file in home.folder.rglob("*.secret"))


def test_a_living_process_is_found_with_its_facts(home: Home) -> None:
    home.record("agent", connect_port=15002)
    found = home.processes()["agent"]
    assert (found.pid, found.facts["connect_port"]) == (os.getpid(), 15002)


def test_facts_given_anew_leave_the_time_of_the_start(home: Home) -> None:
    home.record("supervisor", ready=False)
    started = home.processes()["supervisor"].started
    home.record("supervisor", ready=True)
    found = home.processes()["supervisor"]
    assert (found.started, found.facts) == (started, {"ready": True})


def test_an_ended_process_is_not_found(home: Home) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        home.record("agent", process.pid)
        assert "agent" in home.processes()
        process.kill()
        process.wait()
    assert home.processes() == {}


def test_a_process_that_ended_and_was_not_reaped_is_not_found(home: Home) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    home.record("agent", process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert home.processes() == {}
    process.wait()
    assert process.stdin is not None
    process.stdin.close()


def test_a_recycled_pid_is_not_mistaken(home: Home) -> None:
    home.record("agent")
    record = home.run / "agent.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"birth": "an earlier boot/1"}))
    assert home.processes() == {}


def test_a_half_written_record_is_no_process(home: Home) -> None:
    (home.run / "agent.json").write_text('{"pid": 1')
    assert home.processes() == {}


def test_a_record_reads_back_as_it_was_written(tmp_path: Path) -> None:
    record = ProcessRecord.of(os.getpid(), {"port": 1})
    (tmp_path / "agent.json").write_text(record.as_json())
    assert ProcessRecord.read(tmp_path / "agent.json") == record


def test_a_home_is_served_by_one_supervisor(home: Home) -> None:
    with home.lock(), pytest.raises(Unready, match="highwater stop"), Home(home.folder).lock():
        pass
    with home.lock():
        pass
