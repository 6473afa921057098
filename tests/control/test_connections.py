"""What a control database that goes away looks like: one error, and all well when it is back."""

from __future__ import annotations

import psycopg
import pytest
from sqlalchemy import delete

from engine.control import PUBLISHED, ControlDatabase
from engine.control.schema import databases
from engine.errors import ControlNotWritable, ControlUnreachable


def end_sessions(dsn: str) -> None:
    """Ends every other session of the database, as a server's restart does."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_sessions_that_ended_are_replaced_unnoticed(control, control_dsn):
    end_sessions(control_dsn)
    assert [source.name for source in control.sources.list()] == ["hr"]


def test_a_transaction_that_is_cut_off_is_an_error_of_ours(control, control_dsn):
    with pytest.raises(ControlUnreachable), control._connections.begin() as connection:
        end_sessions(control_dsn)
        connection.exec_driver_sql("SELECT 1")
    assert [source.name for source in control.sources.list()] == ["hr"]


def test_a_wait_that_is_cut_off_is_an_error_of_ours(control, control_dsn):
    with control.listen(PUBLISHED) as listener:
        end_sessions(control_dsn)
        with pytest.raises(ControlUnreachable):
            listener.wait(60)


def test_a_database_that_nobody_migrated_is_named_as_such(control_dsn):
    control = ControlDatabase.open(control_dsn)
    with pytest.raises(ControlUnreachable, match="no tables yet"):
        control.sources.list()
    control.close()


def test_a_database_that_takes_no_changes_is_told_from_one_that_is_away(control):
    refused = pytest.raises(ControlNotWritable, match=r"takes no changes: cannot execute .* read-only")
    with refused as told, control._connections.begin() as connection:
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        connection.execute(delete(databases))
    assert isinstance(told.value, ControlUnreachable)
    assert told.value.number == 50011
    assert [source.name for source in control.sources.list()] == ["hr"]
