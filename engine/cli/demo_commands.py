"""highwater demo: keeps the demo company busy."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from engine.cli.session import DEFAULT_HOME, HomeOption, opened
from engine.errors import WorkloadMixInvalid
from engine.model.workload_mix import Mix

DEMO_DATABASE = "demo"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(demo)


def demo(
    rate: Annotated[float, typer.Option(metavar="N", min=0.001, help="Transactions a second.")] = 10.0,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", min=0, help="How long; until Ctrl-C by default.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="K", help="The same seed on a new demo does the same.")] = 1,
    schema: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Change tables of this schema alone; repeatable.")
    ] = None,
    inserts: Annotated[int, typer.Option(metavar="PART", help="The part of inserts in what is done.")] = 0,
    updates: Annotated[int, typer.Option(metavar="PART", help="Of updates.")] = 0,
    deletes: Annotated[
        int, typer.Option(metavar="PART", help="Of deletes. All three 0: as the company does.")
    ] = 0,
    rows: Annotated[int, typer.Option(metavar="R", help="Statements of a transaction, at least.")] = 1,
    burst: Annotated[int, typer.Option(metavar="B", help="So many transactions come at once.")] = 1,
    database: Annotated[
        str,
        typer.Option("-d", "--database", help="Source database; the company is put there if it is missing."),
    ] = DEMO_DATABASE,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Run a mixed workload on the demo company: orders, stock, prices, hires, deletes, rollbacks.

    N × S transactions are run, at most N a second.
    """
    with opened(home) as engine:
        from engine.demo import install, run

        mix = Mix(",".join(schema or ()), inserts, updates, deletes, rows, burst)
        if (problem := mix.problem()) is not None:
            raise WorkloadMixInvalid(problem)
        dsn = engine.dsn(engine.database(database).name)
        with _until_interrupted() as wait:
            if install(dsn):
                typer.echo(f"The demo company is in database '{database}'.")
            summary = run(dsn, rate, seconds, seed, wait, mix=mix)
        typer.echo(summary.line())


@contextmanager
def _until_interrupted() -> Iterator[Callable[[float], bool]]:
    """Gives a function that waits some seconds and says whether Ctrl-C or SIGTERM has come."""
    stopped = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.signal(each, lambda *_: stopped.set()) for each in signals}
    try:
        yield stopped.wait
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
