"""Sources as earlier versions enabled them: their scripts, as they were."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg

from engine.sources.postgres.names import EVENT_TRIGGERS, always

FOLDER = Path(__file__).parent
VERSIONS = tuple(sorted(script.stem for script in FOLDER.glob("*.sql")))

# The key of seals stays as well: with it the words were sealed that are in the log already.
_TABLES = ("tracked_tables", "tracked_indexes", "fixed_partitions")
_FUNCTIONS = """
SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = 'cdc' AND p.proname <> 'refuse_truncate'
"""


def make_earlier(connection: psycopg.Connection[Any], version: str) -> None:
    """Gives an enabled database, its tracked tables too, the objects that an earlier version made."""
    script = (FOLDER / f"{version}.sql").read_text()
    for trigger in ("highwater_before", "highwater_ddl", "highwater_drop"):
        connection.execute(f"DROP EVENT TRIGGER IF EXISTS {trigger}")
    for (function,) in connection.execute(_FUNCTIONS).fetchall():
        connection.execute(f"DROP FUNCTION {function}")
    for table in _TABLES:
        connection.execute(f"CREATE TEMP TABLE kept_{table} AS SELECT * FROM cdc.{table}")
        connection.execute(f"DROP TABLE cdc.{table}")
    connection.execute("DROP TABLE cdc.own_ddl, cdc.unsealed_words")
    script = script.replace("CREATE SCHEMA cdc;", "")
    connection.execute(re.sub(r"CREATE (FUNCTION cdc.refuse_truncate)", r"CREATE OR REPLACE \1", script))
    for table in _TABLES:
        if re.search(rf"CREATE TABLE (IF NOT EXISTS )?cdc.{table} ", script):
            connection.execute(f"DELETE FROM cdc.{table}")
            connection.execute(f"INSERT INTO cdc.{table} SELECT * FROM kept_{table}")
        connection.execute(f"DROP TABLE kept_{table}")
    if "cdc.version()" in script:
        # Not part of the script since a role may make them that runs nothing else of it.
        for trigger, statement in EVENT_TRIGGERS.items():
            connection.execute(statement)
            connection.execute(always(trigger))
