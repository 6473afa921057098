"""Alembic's entry: runs on the connection that `engine.control.migrate` passes in its config."""

from __future__ import annotations

from alembic import context

from engine.control.schema import metadata


def run() -> None:
    """All pending revisions on the caller's connection, inside the caller's transaction."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table="schema_version",
        version_table_schema="dbo",
    )
    context.run_migrations()


run()
