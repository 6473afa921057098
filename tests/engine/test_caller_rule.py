"""Whoever is not allowed to call a procedure gets its number, and nothing has changed."""

from __future__ import annotations

import inspect
import itertools

import pytest

from engine.engine import Engine
from engine.errors import CallerNotOwner, CallerNotSysadmin, UnknownDatabase
from engine.model.job import JobType
from tests.engine.test_compatibility import CALLS

_numbers = itertools.count(1)

PROCEDURES = sorted(
    name
    for name, method in inspect.getmembers(Engine, inspect.isfunction)
    if (method.__doc__ or "").startswith("sys.sp_")
)
"""Every method that is a procedure of the original's."""
SECTIONS = {row.place[0]: row.section for row in CALLS if row.entry.startswith("sys.sp_") and row.place}
REFUSALS = {
    "Database level": CallerNotSysadmin,
    "Table level": CallerNotOwner,
    "Jobs": CallerNotOwner,
    "Scan and cleanup": CallerNotOwner,
    "Metadata": None,
}
"""By section of docs/compatibility.md; metadata is anybody's to ask, who sees what he may read."""


@pytest.fixture
def new_role(sql):
    """Makes roles of the source; they go after the test."""
    made = []

    def make(options="", name=None):
        made.append(name or f"caller {next(_numbers)}")
        sql(f'CREATE ROLE "{made[-1]}" {options}')
        return made[-1]

    yield make
    for role in reversed(made):
        sql(f'REASSIGN OWNED BY "{role}" TO CURRENT_USER; DROP OWNED BY "{role}"; DROP ROLE "{role}"')


def state(engine, database, sql):
    """What a procedure could have changed."""
    return (
        engine.databases(),
        engine.help_change_data_capture(database),
        engine.help_jobs(database),
        engine.watermarks(database),
        sql("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"),
        sql("SELECT * FROM pg_publication_tables"),
        sql("SELECT rolname FROM pg_roles ORDER BY 1"),
        sql("SELECT * FROM cdc.tracked_tables"),
    )


def arguments(method, given):
    """Of what is given, what the method must have."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    needed = [one.name for one in parameters if one.default is inspect.Parameter.empty]
    return {name: given[name] for name in (*needed, "principal")}


@pytest.mark.parametrize("name", PROCEDURES)
def test_a_stranger_may_call_no_procedure(engine, enabled, sql, new_role, name):
    refusal = REFUSALS[SECTIONS[name]]
    method = getattr(Engine, name)
    assert "principal" in inspect.signature(method).parameters
    if refusal is None:
        return
    engine.enable_table(enabled, "hr", "department", role_name=None)
    stranger = new_role()
    before = state(engine, enabled, sql)
    given = {
        "database": enabled,
        "source_schema": "hr",
        "source_name": "department",
        "capture_instance": "hr_department",
        "role_name": None,
        "job_type": JobType.CAPTURE,
        "low_water_mark": None,
    }
    for principal in ("nobody", stranger):
        with pytest.raises(refusal):
            method(engine, **arguments(method, given | {"principal": principal}))
    assert state(engine, enabled, sql) == before


def test_every_procedure_is_one_of_the_sections():
    assert set(PROCEDURES) == set(SECTIONS)
    assert {SECTIONS[name] for name in PROCEDURES} == set(REFUSALS)


def test_whoever_owns_the_database_is_db_owner(engine, enabled, sql, source_dsn, new_role):
    owner, member, db_owner, other = new_role(), new_role(), new_role(name="db_owner"), new_role()
    database = sql("SELECT current_database()")[0][0]
    with pytest.raises(CallerNotOwner):
        engine.help_jobs(enabled, principal=owner)
    sql(f'ALTER DATABASE {database} OWNER TO "{owner}"; GRANT "{owner}" TO "{member}"')
    sql(f'GRANT {db_owner} TO "{other}"')
    for name in (owner, member, db_owner, other, new_role("SUPERUSER"), None):
        engine.enable_table(enabled, "hr", "department", role_name=None, principal=name)
        assert [job.job_type for job in engine.help_jobs(enabled, principal=name)] == ["capture", "cleanup"]
        assert len(engine.help_change_data_capture(enabled, principal=name)) == 1
        engine.disable_table(enabled, "hr", "department", "all", principal=name)
    sql(f'REVOKE {db_owner} FROM "{other}"')
    with pytest.raises(CallerNotOwner, match="DBO privileges"):
        engine.enable_table(enabled, "hr", "department", role_name=None, principal=other)


def test_a_superuser_is_sysadmin_and_the_owner_is_not(engine, hr, sql, new_role):
    owner, boss, deputy = new_role(), new_role("SUPERUSER"), new_role()
    database = sql("SELECT current_database()")[0][0]
    sql(f'ALTER DATABASE {database} OWNER TO "{owner}"; GRANT "{boss}" TO "{deputy}"')
    for allowed in (boss, deputy, None):
        for call in (engine.enable_db, engine.disable_db):
            with pytest.raises(CallerNotSysadmin, match="sysadmin privileges"):
                call(hr, principal=owner)
            call(hr, principal=allowed)


def test_a_database_that_is_not_there_has_no_callers(engine):
    with pytest.raises(UnknownDatabase):
        engine.help_jobs("none", principal="nobody")
