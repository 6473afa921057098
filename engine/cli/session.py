"""What the commands share: their common options, and the engine of a home while a command runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.failures import reported

if TYPE_CHECKING:
    from engine.engine import Engine

HomeOption = Annotated[
    Path,
    typer.Option("--home", envvar="HIGHWATER_HOME", help="Folder with all state.", show_default=True),
]
DatabaseOption = Annotated[
    str | None,
    typer.Option("-d", "--database", help="Source database; not needed when there is only one."),
]
DEFAULT_HOME = Path("var")


@contextmanager
def opened(home: Path) -> Iterator[Engine]:
    """The engine of ``home``, closed afterwards. An error of ours ends the command with its message.

    The engine is imported here: whoever asks for help does not wait for it.
    """
    with reported():
        from engine.engine import Engine
        from engine.settings import Settings

        engine = Engine.open(Settings(home=home))
        try:
            yield engine
        finally:
            engine.close()
