"""A migrated control database with one registered source."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from engine.control import ControlDatabase
from engine.model.capture_instance import CapturedColumn, CaptureInstance, IndexColumn


@pytest.fixture
def control(control_dsn: str) -> Iterator[ControlDatabase]:
    database = ControlDatabase.open(control_dsn)
    database.migrate()
    database.sources.add("hr", "postgres", "postgresql:///hr")
    yield database
    database.close()


def an_instance(
    object_id: int = 1, name: str = "hr_department", table: str = "department"
) -> CaptureInstance:
    return CaptureInstance(
        object_id=object_id,
        database="hr",
        capture_instance=name,
        source_schema="hr",
        source_table=table,
        source_object_id=16400,
        start_lsn=None,
        supports_net_changes=True,
        role_name=None,
        index_name="department_pkey",
        filegroup_name=None,
        create_date=datetime(2026, 11, 21, 9, 30, tzinfo=UTC),
        columns=(
            CapturedColumn("id", 1, "integer", 1, False, "int"),
            CapturedColumn("name", 3, "text", 2, False, "string"),
        ),
        index_columns=(IndexColumn("id", 1, 1),),
    )
