"""An agent that is frozen holds nothing up: neither in the middle of a publication nor with its lease."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError

from engine.control import leases
from engine.control.leases import hold
from engine.errors import ControlUnreachable


def test_who_freezes_while_it_publishes_loses_its_lock_and_publishes_nothing(control, monkeypatch):
    """The successor waits for the server to end the transaction; then the lease is free when it expires."""
    monkeypatch.setattr(leases, "_FROZEN", leases.func.set_config(*TIMEOUT))
    lease = control.leases.acquire("hr", "frozen", 30)
    with pytest.raises((ControlUnreachable, DBAPIError)), control._connections.begin() as connection:
        hold(connection, "hr", lease.token)
        # Whoever holds the lease would wait here until the frozen transaction has ended.
        assert control.leases.acquire("hr", "frozen", 30).token == lease.token + 1
        connection.exec_driver_sql("UPDATE dbo.databases SET name = 'published'")
    assert [each.name for each in control.sources.list()] == ["hr"]


TIMEOUT = ("idle_in_transaction_session_timeout", "50ms", True)
