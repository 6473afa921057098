"""Registering, enabling and disabling databases."""

from __future__ import annotations

from contextlib import contextmanager

import psycopg
import pytest

from engine.errors import (
    CdcSchemaExists,
    DatabaseAlreadyEnabled,
    DatabaseExists,
    DatabaseNotEnabled,
    DatabaseStillEnabled,
    NameInvalid,
    SourceUnreachable,
    SystemDatabase,
    UnknownDatabase,
)
from engine.procedures.databases import with_password


def test_a_connected_database_is_registered_without_its_password(engine, home, control, source_dsn):
    engine.connect("hr", source_dsn.replace("postgres@", "postgres:secret@", 1))
    assert "secret" not in control.sources.get("hr").dsn
    assert home.secret("hr") == "secret"
    assert "secret" in engine.dsn("hr")
    assert not engine.database("hr").is_cdc_enabled


def test_connecting_again_changes_nothing(engine, source_dsn):
    engine.connect("hr", source_dsn)
    engine.connect("hr", source_dsn)
    assert [database.name for database in engine.databases()] == ["hr"]


def test_an_unreachable_source_is_not_registered(engine):
    with pytest.raises(SourceUnreachable):
        engine.connect("hr", "postgresql://nobody@localhost:1/none")
    assert engine.databases() == []


@pytest.mark.parametrize("name", ["", "a/b", " a", "a\n", "..", "x" * 129])
def test_a_name_must_serve_as_a_folder(engine, source_dsn, name):
    with pytest.raises(NameInvalid):
        engine.connect(name, source_dsn)


def test_an_enabled_database_stays_with_its_source(engine, enabled, new_database):
    with pytest.raises(DatabaseExists):
        engine.connect(enabled, new_database())


def test_the_only_database_needs_no_name(engine, hr):
    assert engine.database(None).name == "hr"


def test_of_several_databases_one_must_be_named(engine, hr, new_database):
    engine.connect("sales", new_database())
    with pytest.raises(UnknownDatabase, match="hr, sales"):
        engine.database(None)


def test_an_unknown_database_is_an_error_that_lists_the_known(engine, hr):
    with pytest.raises(UnknownDatabase, match="Registered: hr"):
        engine.database("sales")


def test_enabling_sets_the_flag_and_makes_no_job(engine, hr):
    engine.enable_db(hr)
    assert engine.database(hr).is_cdc_enabled
    assert engine.help_jobs(hr) == []


def test_enabling_twice_is_a_message_of_severity_10(engine, enabled):
    with pytest.raises(DatabaseAlreadyEnabled) as caught:
        engine.enable_db(enabled)
    assert caught.value.line().startswith("Msg 22905, Level 10, State 1: ")


def test_a_schema_cdc_of_somebody_else_is_in_the_way(engine, hr, sql):
    sql("CREATE SCHEMA cdc")
    with pytest.raises(CdcSchemaExists):
        engine.enable_db(hr)
    assert not engine.database(hr).is_cdc_enabled


def test_a_template_that_new_databases_copy_is_not_enabled(engine, hr, postgres, source_dsn):
    name = psycopg.conninfo.conninfo_to_dict(source_dsn)["dbname"]
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} IS_TEMPLATE true")
        try:
            with pytest.raises(SystemDatabase):
                engine.enable_db(hr)
        finally:
            connection.execute(f"ALTER DATABASE {name} IS_TEMPLATE false")
    assert not engine.database(hr).is_cdc_enabled


def test_disabling_leaves_nothing(engine, enabled, control, sql):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    engine.disable_db(enabled)
    assert not engine.database(enabled).is_cdc_enabled
    assert control.instances.list(enabled) == []
    assert control.jobs.list(enabled) == []
    assert sql("SELECT FROM pg_replication_slots WHERE database = current_database()") == []
    assert sql("SELECT FROM pg_publication") == []
    assert [table.capture_instance for table in control.instances.dropped(enabled)] == ["hr_department", None]


def test_disabling_what_is_not_enabled_is_an_error(engine, hr):
    with pytest.raises(DatabaseNotEnabled):
        engine.disable_db(hr)


def test_an_enabling_that_was_cut_short_can_be_taken_back(engine, enabled, control):
    control.sources.set_enabled(enabled, False)
    engine.disable_db(enabled)
    engine.enable_db(enabled)


@pytest.mark.parametrize(
    ("dsn", "expected"),
    [
        ("postgresql://u@h/d", "postgresql://u:p%40s@h/d"),
        ("postgresql://u@/d?host=/tmp", "postgresql://u:p%40s@/d?host=/tmp"),
        ("postgresql://h/d", "postgresql://h/d?password=p%40s"),
        ("postgresql:///d?host=/a@b", "postgresql:///d?host=/a@b&password=p%40s"),
    ],
)
def test_a_password_goes_into_the_uri(dsn, expected):
    assert with_password(dsn, "p@s") == expected
    assert psycopg.conninfo.conninfo_to_dict(expected)["password"] == "p@s"


def test_a_disabled_database_is_free_for_the_next_capture_process(engine, enabled, control):
    before = control.leases.acquire(enabled, "agent", 30)
    control.leases.release(before)
    engine.disable_db(enabled)
    engine.enable_db(enabled)
    after = control.leases.acquire(enabled, "agent", 30)
    assert after is not None
    assert after.token > before.token


@pytest.fixture
def tracked(engine, enabled):
    """The same with a tracked table."""
    engine.enable_table(enabled, "hr", "department", role_name=None)
    return enabled


def server_statements(postgres, *statements):
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@contextmanager
def gone(postgres, dsn):
    """The database has another name meanwhile, which is yielded."""
    name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
    server_statements(postgres, f"ALTER DATABASE {name} RENAME TO {name}_moved")
    try:
        yield f"{name}_moved"
    finally:
        server_statements(postgres, f"ALTER DATABASE {name}_moved RENAME TO {name}")


def objects_of_ours(sql):
    return sql(
        "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
        " UNION ALL SELECT pubname FROM pg_publication UNION ALL SELECT evtname FROM pg_event_trigger"
        " UNION ALL SELECT nspname FROM pg_namespace WHERE nspname = 'cdc'"
        " UNION ALL SELECT relname FROM pg_class WHERE relreplident = 'f'"
    )


def test_a_database_that_is_not_enabled_is_disconnected(engine, home, hr):
    home.keep_secret(hr, "secret")
    assert engine.disconnect(hr) == []
    assert engine.databases() == []
    assert home.secret(hr) is None


def test_an_enabled_database_is_disabled_before_it_is_disconnected(engine, tracked):
    with pytest.raises(DatabaseStillEnabled, match="Disable it first: highwater disable -d hr"):
        engine.disconnect(tracked)
    assert len(engine.help_change_data_capture(tracked)) == 1


def test_by_force_an_enabled_database_is_disabled_too(engine, tracked, control, sql):
    assert engine.disconnect(tracked, force=True) == []
    assert engine.databases() == []
    assert objects_of_ours(sql) == []
    assert [table.capture_instance for table in control.instances.dropped()] == ["hr_department", None]


def test_a_source_that_is_gone_is_forgotten_by_force(
    engine, home, tracked, control, postgres, source_dsn, new_database, sql
):
    engine.connect("sales", new_database())
    engine.enable_db("sales")
    home.keep_secret(tracked, "secret")
    with gone(postgres, source_dsn):
        with pytest.raises(DatabaseStillEnabled, match="highwater disconnect hr --force"):
            engine.disconnect(tracked)
        with pytest.raises(SourceUnreachable, match="highwater disconnect hr --force"):
            engine.disable_db(tracked)
        [finding] = [found for found in engine.status().findings if found.subject == "Source hr"]
        assert "highwater disconnect hr --force" in finding.text
        left = engine.disconnect(tracked, force=True)
    assert [database.name for database in engine.databases()] == ["sales"]
    assert engine.database("sales").is_cdc_enabled
    assert engine.slot("sales") is not None
    assert home.secret(tracked) is None
    assert control.jobs.list() == control.instances.list() == []
    assert [table.capture_instance for table in control.instances.dropped()] == ["hr_department", None]
    assert objects_of_ours(sql) != []
    for problem in left[1:]:
        sql(problem.fix)
    assert objects_of_ours(sql) == []


def test_a_source_that_is_back_after_it_was_forgotten_is_cleaned_by_disabling(
    engine, tracked, postgres, source_dsn, sql
):
    with gone(postgres, source_dsn):
        left = engine.disconnect(tracked, force=True)
    assert "highwater connect hr DSN; highwater disable -d hr" in left[0].fix
    engine.connect(tracked, source_dsn)
    engine.disable_db(tracked)
    assert objects_of_ours(sql) == []


def test_a_source_that_another_home_captures_stays_as_it_is(engine, tracked, control, sql):
    control.sources.set_enabled(tracked, False)
    [note, *_] = engine.disconnect(tracked)
    assert "not by this home" in note.problem
    assert len(objects_of_ours(sql)) > 4


def test_a_database_that_was_renamed_can_be_begun_anew(engine, tracked, postgres, source_dsn):
    with gone(postgres, source_dsn) as name:
        dsn = psycopg.conninfo.make_conninfo(source_dsn, dbname=name)
        with pytest.raises(DatabaseExists):
            engine.connect(tracked, dsn)
        engine.disconnect(tracked, force=True)
        engine.connect(tracked, dsn)
        engine.disable_db(tracked)
        with psycopg.connect(dsn) as connection:
            slots = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
            assert connection.execute(slots).fetchall() == []
        engine.enable_db(tracked)
        engine.disable_db(tracked)
