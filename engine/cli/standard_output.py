"""Lines on the standard output, as scripts read them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


def write(text: Iterable[str]) -> None:
    """UTF-8 with plain line ends, whatever the terminal's settings."""
    output = sys.stdout.buffer
    for line in text:
        output.write(line.encode())
    output.flush()


@contextmanager
def pipe_may_close() -> Iterator[None]:
    """A reader that has had enough (``| head``) is no failure."""
    try:
        yield
    except BrokenPipeError:
        # What is still buffered must not fail again when the interpreter exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
