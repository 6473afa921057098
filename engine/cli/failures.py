"""Failures as the command line shows them: one line on stderr and exit code 1, never a traceback."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from pydantic import ValidationError

from engine.errors import CdcError
from engine.runtime.unready import Unready

MESSAGE_SEVERITY = 10
"""Up to this severity an error is a message: it is printed, and nothing has failed."""


@contextmanager
def reported() -> Iterator[None]:
    """Ends the command with 1 on an error of ours, after its message; others pass."""
    try:
        yield
    except CdcError as error:
        typer.echo(error.line(), err=True)
        if error.severity > MESSAGE_SEVERITY:
            raise typer.Exit(1) from error
    except (Unready, tomllib.TOMLDecodeError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            name = ".".join(str(part) for part in problem["loc"])
            typer.echo(f"Setting '{name}': {problem['msg']}", err=True)
        raise typer.Exit(1) from error
