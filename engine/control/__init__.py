"""The control database: jobs, metadata and positions in any PostgreSQL; only this room knows SQLAlchemy."""

from engine.control.database import ControlDatabase
from engine.control.instances import DroppedTable
from engine.control.leases import DISABLING, Lease, LeaseOf, LeaseState
from engine.control.notifications import JOBS, PUBLISHED, REPORTED, WAKE, Listener, Notification
from engine.control.publication import Publication

__all__ = [
    "DISABLING",
    "JOBS",
    "PUBLISHED",
    "REPORTED",
    "WAKE",
    "ControlDatabase",
    "DroppedTable",
    "Lease",
    "LeaseOf",
    "LeaseState",
    "Listener",
    "Notification",
    "Publication",
]
