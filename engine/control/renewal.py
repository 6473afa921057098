"""Keeping a lease for as long as something runs under it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import structlog

from engine.control.leases import Lease, LeaseRepository
from engine.errors import ControlUnreachable

_log = structlog.get_logger(__name__)


@contextmanager
def renewing(
    leases: LeaseRepository, lease: Lease, seconds: int, lost: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Renews the lease, of so many seconds, in a thread while it is open.

    Whoever writes checks its token, so a lost one does no harm; ``lost`` is called when another has it.
    """
    done = Event()
    thread = Thread(
        target=_renew, args=(leases, lease, seconds, done, lost), name=f"{lease.database} lease", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _renew(
    leases: LeaseRepository, lease: Lease, seconds: int, done: Event, lost: Callable[[], None]
) -> None:
    while not done.wait(seconds / 3):
        try:
            if not leases.renew(lease):
                lost()
                return
        except ControlUnreachable:
            _log.warning("lease not renewed", database=lease.database)
