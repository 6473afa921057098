"""A small file system for a lake or a server, which can be filled up and made read-only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MEGABYTES = 96


class OwnDiskRefusedError(Exception):
    """This user may not mount any."""


class OwnDisk:
    """A tmpfs mounted on a folder. Raises OwnDiskRefusedError."""

    def __init__(self, folder: Path, megabytes: int = MEGABYTES) -> None:
        self.folder = folder
        self._filler = folder / "filler"
        mode = folder.stat().st_mode & 0o777
        self._run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode={mode:o}", "tmpfs", str(folder))

    def fill(self) -> None:
        """Not a byte is left."""
        with self._filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(os.urandom(64 * 1024))
            except OSError:
                return

    def empty(self) -> None:
        """There is room again."""
        self._filler.unlink()

    def make_read_only(self) -> None:
        """As a kernel does that has met an error of the disk: at the first moment when nobody writes."""
        while True:
            try:
                self._run("mount", "-o", "remount,ro", str(self.folder))
                return
            except OwnDiskRefusedError as error:
                if "busy" not in str(error):
                    raise

    def make_writable(self) -> None:
        self._run("mount", "-o", "remount,rw", str(self.folder))

    def close(self) -> None:
        self._run("umount", "--lazy", str(self.folder))

    def _run(self, *command: str) -> None:
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise OwnDiskRefusedError(str(error)) from error
        except subprocess.CalledProcessError as error:
            raise OwnDiskRefusedError(error.stderr) from error


@contextmanager
def own_disk(folder: Path, megabytes: int = MEGABYTES) -> Iterator[OwnDisk]:
    """While it is open, a folder is a file system of its own; skips where none may be mounted."""
    try:
        disk = OwnDisk(folder, megabytes)
    except OwnDiskRefusedError as error:
        pytest.skip(f"no file system of its own: {error}")
    try:
        yield disk
    finally:
        disk.close()
