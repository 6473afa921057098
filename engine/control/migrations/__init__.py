"""Alembic migrations of the control database: one revision a release that changes it."""
