"""Names of what Highwater makes in a source database."""

from __future__ import annotations

import hashlib
import re

SCHEMA = "cdc"
SCHEMA_COMMENT = "Change data capture by Highwater."
"""How the comment on our schema begins."""
SCHEMA_WARNING = "Do not alter: disable the database instead."
"""What it says then."""
VERSION = 4
"""What cdc.version() of enable.sql says; databases enabled before there was one have none."""
OWNER_COMMENT = "Enabled by home "
"""What comes last in it, before who that is."""
PUBLICATION = "highwater"
TRUNCATE_GUARD = "refuse_truncate"
TRUNCATE_TRIGGER = "highwater_refuse_truncate"
TRACKED_TABLES = "tracked_tables"
TRACKED_INDEXES = "tracked_indexes"
FIXED_PARTITIONS = "fixed_partitions"
UNSEALED_WORDS = "unsealed_words"
BEFORE_TRIGGER, DDL_TRIGGER, DROP_TRIGGER = "highwater_before", "highwater_ddl", "highwater_drop"

_EVENTS = {
    BEFORE_TRIGGER: ("ddl_command_start WHEN TAG IN ('ALTER TABLE', 'DROP INDEX')", "before_ddl"),
    DDL_TRIGGER: ("ddl_command_end", "record_ddl"),
    DROP_TRIGGER: ("sql_drop", "record_drop"),
}
EVENT_TRIGGERS = {
    name: f"CREATE EVENT TRIGGER {name} ON {event} EXECUTE FUNCTION {SCHEMA}.{function}()"
    for name, (event, function) in _EVENTS.items()
}
"""What tells the log of DDL on tracked tables; a superuser may run these when the connecting role may not."""
TRIGGER_FUNCTIONS = tuple(function for _, function in _EVENTS.values())
"""The functions in schema ``cdc`` that they call."""


def always(trigger: str) -> str:
    """The statement after which an event trigger fires in sessions of every session_replication_role.

    A table altered by whoever applies another server's changes, or by a restore, is altered all the same:
    rows that follow have another shape, and capture must know.
    """
    return f"ALTER EVENT TRIGGER {trigger} ENABLE ALWAYS"


OWN_DDL = f"SELECT set_config('highwater.own', word, true) FROM {SCHEMA}.own_ddl"
"""Said in a transaction whose DDL is ours: event triggers leave it alone."""

SLOT_PREFIX = "highwater_"

_LONGEST = 63


def slot_name(database: str) -> str:
    """The slot of one database of a server: slots are the server's, and take only ``[a-z0-9_]``."""
    name = f"{SLOT_PREFIX}{database}"
    if re.fullmatch(r"[a-z0-9_]+", name) and len(name) <= _LONGEST:
        return name
    safe = re.sub(r"[^a-z0-9_]", "_", name.lower())
    return f"{safe[: _LONGEST - 9]}_{hashlib.sha256(database.encode()).hexdigest()[:8]}"
