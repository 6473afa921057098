"""Where settings come from, and which wins."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from engine.runtime.unready import Unready
from engine.settings import Settings


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HIGHWATER_HOME", "HIGHWATER_PORT"):
        monkeypatch.delenv(name, raising=False)


def test_the_default_home_is_var_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Settings().home == tmp_path / "var"


def test_the_lake_lies_in_the_home_unless_said_otherwise(tmp_path: Path) -> None:
    assert Settings(home=tmp_path).lake == str(tmp_path / "lake")
    assert Settings(home=tmp_path, lake_root="s3a://lake").lake == "s3a://lake"


def test_environment_wins_over_the_file_and_arguments_over_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "highwater.toml").write_text("port = 1001\nlease_seconds = 20\n")
    assert Settings(home=tmp_path).port == 1001
    monkeypatch.setenv("HIGHWATER_PORT", "1002")
    assert Settings(home=tmp_path).port == 1002
    assert Settings(home=tmp_path, port=1003).port == 1003
    assert Settings(home=tmp_path).lease_seconds == 20


def test_the_file_of_the_home_in_the_environment_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "highwater.toml").write_text("port = 1001\n")
    monkeypatch.setenv("HIGHWATER_HOME", str(tmp_path))
    assert (Settings().home, Settings().port) == (tmp_path, 1001)


def test_tables_of_settings_come_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "highwater.toml").write_text("[postgres_settings]\nfsync = 'off'\n")
    assert Settings(home=tmp_path).postgres_settings == {"fsync": "off"}


def test_sizes_may_have_units(tmp_path: Path) -> None:
    (tmp_path / "highwater.toml").write_text("piece_bytes = '16MiB'\n")
    assert Settings(home=tmp_path).piece_bytes == 16 * 2**20


def test_a_misspelt_setting_is_refused(tmp_path: Path) -> None:
    (tmp_path / "highwater.toml").write_text("prot = 1001\n")
    with pytest.raises(ValidationError, match="prot"):
        Settings(home=tmp_path)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "highwater.toml").write_text("port = \n")
    with pytest.raises(Unready, match=r"highwater\.toml"):
        Settings(home=tmp_path)


def test_the_password_in_a_control_dsn_does_not_show(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, control_dsn="postgresql://me:geheim@host/msdb")
    assert "geheim" not in repr(settings)
