"""One capture process for a database, ever."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.control import ControlDatabase
from engine.errors import UnknownDatabase


def expire(control: ControlDatabase) -> None:
    """Lets every lease end now, as if its holder had fallen silent."""
    with control._connections.begin() as connection:
        connection.exec_driver_sql("UPDATE dbo.leases SET expires = clock_timestamp() - interval '1 s'")


def test_a_lease_held_by_another_is_refused(control):
    assert control.leases.acquire("hr", "a", 30) is not None
    assert control.leases.acquire("hr", "b", 30) is None


def test_the_same_holder_takes_over_at_once_with_a_new_token(control):
    first, second = (control.leases.acquire("hr", "a", 30) for _ in range(2))
    assert second.token > first.token
    assert not control.leases.renew(first)
    assert control.leases.renew(second)


def test_an_expired_lease_is_free(control):
    first = control.leases.acquire("hr", "a", 30)
    expire(control)
    second = control.leases.acquire("hr", "b", 30)
    assert second.token > first.token
    assert not control.leases.renew(first)


def test_a_late_holder_may_renew_what_nobody_took(control):
    lease = control.leases.acquire("hr", "a", 30)
    expire(control)
    assert control.leases.renew(lease)
    assert control.leases.acquire("hr", "b", 30) is None


def set_clock_back(control: ControlDatabase, hours: int) -> None:
    """Leases as they are seen once the server's clock was set back."""
    with control._connections.begin() as connection:
        connection.exec_driver_sql(f"UPDATE dbo.leases SET expires = expires + interval '{hours} h'")


def left(control: ControlDatabase) -> float:
    """Seconds that the lease still has."""
    with control._connections.begin() as connection:
        found = connection.exec_driver_sql(
            "SELECT extract(epoch FROM expires - clock_timestamp()) FROM dbo.leases"
        )
        return float(found.scalar_one())


def test_a_dead_holders_lease_ends_though_the_clock_was_set_back(control):
    first = control.leases.acquire("hr", "a", 30)
    set_clock_back(control, 1)
    assert control.leases.acquire("hr", "b", 60) is None
    assert 29 < left(control) <= 30
    expire(control)
    second = control.leases.acquire("hr", "b", 60)
    assert second.token > first.token
    assert 59 < left(control) <= 60


def test_a_living_holder_keeps_its_lease_though_the_clock_was_set_back(control):
    first = control.leases.acquire("hr", "a", 30)
    set_clock_back(control, 1)
    assert control.leases.acquire("hr", "b", 30) is None
    assert control.leases.renew(first)
    assert control.leases.acquire("hr", "b", 30) is None
    assert control.leases.holders("hr") == {"capture": "a"}


def test_its_holder_takes_over_a_lease_though_the_clock_was_set_back(control):
    first = control.leases.acquire("hr", "a", 30)
    set_clock_back(control, 1)
    assert control.leases.acquire("hr", "a", 30).token > first.token
    assert 29 < left(control) <= 30


def test_a_released_lease_is_free(control):
    control.leases.release(control.leases.acquire("hr", "a", 30))
    assert not control.leases.list()[0].current
    assert control.leases.acquire("hr", "b", 30) is not None


def test_releasing_an_old_lease_does_not_free_the_new_one(control):
    first, _ = (control.leases.acquire("hr", "a", 30) for _ in range(2))
    control.leases.release(first)
    assert control.leases.acquire("hr", "b", 30) is None


def test_of_many_that_race_one_wins(control):
    with ThreadPoolExecutor(8) as pool:
        leases = list(pool.map(lambda n: control.leases.acquire("hr", f"agent {n}", 30), range(8)))
    assert sum(lease is not None for lease in leases) == 1


def test_an_unknown_database_has_no_lease(control):
    with pytest.raises(UnknownDatabase):
        control.leases.acquire("nobody", "a", 30)
