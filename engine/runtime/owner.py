"""Who runs this process."""

from __future__ import annotations

import getpass
import os


def owner() -> str:
    """The name of the operating system's user; the number where it has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        return str(os.getuid())
