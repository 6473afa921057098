"""OBJECT_ID."""

from __future__ import annotations

import re

from engine.tsql.names import DEFAULT_SCHEMA, chosen
from engine.tsql.running.session import Session


def object_id(session: Session, name: str) -> int | None:
    """OBJECT_ID of a table of the source, or of a temporary one: anything but NULL says it is there."""
    parts = [part.strip('[]"') for part in re.findall(r'\[[^\]]+\]|"[^"]+"|[^.]+', name)]
    *qualifier, last = parts
    if last.startswith("#"):
        return 1 if chosen(session.work.relations([last]), "", last) else None
    schema = (qualifier[-1] if qualifier else "") or DEFAULT_SCHEMA
    for each in session.engine.source_tables(session.database):
        if (each.schema.lower(), each.name.lower()) == (schema.lower(), last.lower()):
            return each.source_object_id
    if schema.lower() == "cdc" and session.engine.database(session.database).is_cdc_enabled:
        for instance in session.engine.help_change_data_capture(session.database):
            if instance.change_table.lower() == last.lower():
                return instance.object_id
    return None
