"""A log is put aside while another process appends to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.runtime.log_cut import _take_out, put_aside

WRITER = """
import sys
for number in range(200_000):
    print(number, flush=True)
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "clerk.log"


@pytest.fixture
def collapses(tmp_path: Path) -> bool:
    """Whether this file system can take the beginning out of a file."""
    probe = tmp_path / "probe"
    probe.write_bytes(bytes(2**20 + 1))
    with probe.open("r+b") as file:
        return _take_out(file.fileno(), 2**20)


def test_nothing_is_lost_while_a_process_writes(log: Path, collapses: bool) -> None:
    """Where a file's beginning can't be taken out, at least nothing is doubled, reordered or changed."""
    aside, pieces = log.with_suffix(".log.1"), []
    with log.open("ab") as file, subprocess.Popen([sys.executable, "-c", WRITER], stdout=file) as writer:
        while writer.poll() is None:
            if log.stat().st_size > 8192:
                put_aside(log, aside)
                pieces.append(aside.read_bytes())
    pieces.append(log.read_bytes())
    written, end = b"".join(b"%d\n" % number for number in range(200_000)), 0
    for piece in pieces:
        end = written.index(piece, end) + len(piece)
    if collapses:
        assert b"".join(pieces) == written


def test_a_short_log_is_moved_whole(log: Path) -> None:
    log.write_text("short")
    put_aside(log, log.with_suffix(".log.1"))
    assert (log.read_text(), log.with_suffix(".log.1").read_text()) == ("", "short")


@pytest.mark.parametrize("size", [5, 100_000])
def test_a_log_that_cannot_be_put_aside_is_cut_all_the_same(log: Path, size: int) -> None:
    log.write_bytes(bytes(size))
    aside = log.with_suffix(".log.1")
    aside.mkdir()
    with pytest.raises(OSError, match="directory"):
        put_aside(log, aside)
    assert log.stat().st_size < min(size, 2**16)
