"""What enabling made in a database, as statements that remove it by hand: for one that can't be reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from psycopg import sql

from engine.model.capture_instance import CaptureInstance
from engine.sources.base import SourceProblem
from engine.sources.postgres.names import EVENT_TRIGGERS, PUBLICATION, SCHEMA


def remains(slot: str, instances: Sequence[CaptureInstance]) -> Iterator[SourceProblem]:
    """What may be there, each with its statements; run in this order they work, whatever is gone already."""
    yield SourceProblem(
        "slot",
        f"The server keeps its log for replication slot {slot} until that is dropped.",
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        f" WHERE slot_name = {sql.Literal(slot).as_string(None)};",
        fatal=False,
    )
    triggers = " ".join(f"DROP EVENT TRIGGER IF EXISTS {trigger};" for trigger in EVENT_TRIGGERS)
    yield SourceProblem(
        "objects",
        f"The database has event triggers, publication {PUBLICATION} and schema {SCHEMA} of Highwater's.",
        f"{triggers} DROP PUBLICATION IF EXISTS {PUBLICATION}; DROP SCHEMA IF EXISTS {SCHEMA} CASCADE;",
        fatal=False,
    )
    tables = sorted({(instance.source_schema, instance.source_table) for instance in instances})
    if tables:
        names = [sql.Identifier(*table).as_string(None) for table in tables]
        yield SourceProblem(
            "replica identity",
            f"Tracked tables log whole old rows: {', '.join(names)} with their partitions.",
            " ".join(f"ALTER TABLE IF EXISTS {name} REPLICA IDENTITY DEFAULT;" for name in names),
            fatal=False,
        )
