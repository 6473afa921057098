"""What roles may do at a PostgreSQL source: facts for the read rule, asked of its catalog."""

from __future__ import annotations

from collections.abc import Sequence

from engine.model.capture_instance import CaptureInstance
from engine.sources.base import Privileges
from engine.sources.postgres.connection import Connection

# The owner's member is what db_owner's member is elsewhere; a superuser is a member of every role.
_OWNER = """
SELECT pg_has_role(r.oid, d.datdba, 'MEMBER') OR EXISTS (
           SELECT FROM pg_roles g WHERE g.rolname = 'db_owner' AND pg_has_role(r.oid, g.oid, 'MEMBER')),
       EXISTS (SELECT FROM pg_roles s WHERE s.rolsuper AND pg_has_role(r.oid, s.oid, 'MEMBER'))
FROM pg_roles r, pg_database d
WHERE r.rolname = %s AND d.datname = current_database()
"""

# has_column_privilege is NULL for a column or a table that is gone: bool_and passes over such columns, and
# gives NULL, hence no row, where none is left.
_SELECTABLE = """
SELECT asked.object_id
FROM unnest(%(instances)s::bigint[], %(tables)s::oid[], %(columns)s::int2[])
       AS asked(object_id, table_id, column_id),
     pg_roles r
WHERE r.rolname = %(principal)s
GROUP BY asked.object_id
HAVING bool_and(has_column_privilege(r.oid, asked.table_id, asked.column_id, 'SELECT'))
"""

# By oid: a gating role that has been dropped has no members, and is no error.
_MEMBER_OF = """
SELECT g.rolname::text
FROM pg_roles g, pg_roles r
WHERE g.rolname = ANY(%(roles)s) AND r.rolname = %(principal)s AND pg_has_role(r.oid, g.oid, 'MEMBER')
"""


def privileges_of(connection: Connection, principal: str, instances: Sequence[CaptureInstance]) -> Privileges:
    """The role's privileges on the tables of ``instances``; none at all for a role that is not there."""
    owner = connection.execute(_OWNER, [principal]).fetchone()
    if owner is None:
        return Privileges()
    columns = [
        (instance.object_id, instance.source_object_id, column.column_id)
        for instance in instances
        for column in instance.columns
    ]
    asked = {
        "principal": principal,
        "instances": [each[0] for each in columns],
        "tables": [each[1] for each in columns],
        "columns": [each[2] for each in columns],
        "roles": [instance.role_name for instance in instances if instance.role_name is not None],
    }
    selectable = connection.execute(_SELECTABLE, asked).fetchall()
    member_of = connection.execute(_MEMBER_OF, asked).fetchall()
    return Privileges(
        is_owner=bool(owner[0] or owner[1]),
        is_sysadmin=bool(owner[1]),
        selectable=frozenset(row[0] for row in selectable),
        member_of=frozenset(row[0] for row in member_of),
    )
