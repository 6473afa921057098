"""The ``highwater`` command."""

from __future__ import annotations

import logging
import sys

import structlog
import typer

from engine.cli import (
    alert_commands,
    capture_commands,
    change_commands,
    cleanup_commands,
    client_commands,
    collector_commands,
    demo_commands,
    jobs_commands,
    monitoring_commands,
    process_commands,
    source_commands,
    sql_commands,
    user_commands,
)


def application() -> typer.Typer:
    """All commands in the order of their help."""
    app = typer.Typer(
        name="highwater",
        help="Change Data Capture as SQL Server has it, for databases that don't.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for commands in (
        process_commands,
        source_commands,
        change_commands,
        sql_commands,
        capture_commands,
        cleanup_commands,
        jobs_commands,
        client_commands,
        monitoring_commands,
        alert_commands,
        collector_commands,
        user_commands,
        demo_commands,
    ):
        commands.register(app)
    return app


def main() -> None:
    """Runs the command line. What rooms log is the agent's business; here only warnings show, on stderr."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    application()()
