"""Who may write into a log may write what looks like Highwater's words: they are told by their seal."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

from engine.sources.base import InstanceDisabled, InstanceEnabled, LogEvent, TableAltered
from engine.sources.postgres import objects
from engine.sources.postgres.log_messages import disabled_json, enabled_json
from engine.sources.postgres.pgoutput import emitted_message
from engine.sources.postgres.tracking import Commands
from tests.sources.conftest import Source
from tests.sources.earlier import make_earlier

WRITE = "SELECT pg_logical_emit_message(true, %s, %s::bytea)"
M = ord("M")
Login = psycopg.Connection[tuple[object, ...]]


def events(source: Source) -> list[LogEvent]:
    return [event for piece in source.pieces() for event in piece.events]


def messages(source: Source) -> list[tuple[str, bytes]]:
    """Prefix and content of what is in the log; the slot stays where it is."""
    name = source.log.slot_state().slot
    rows = source.sql(
        "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL, 'proto_version', '1',"
        " 'publication_names', 'highwater', 'messages', 'true')",
        name,
    )
    found = [emitted_message(data) for (data,) in rows if data[0] == M]
    return [(one.prefix, one.content) for one in found]


@pytest.fixture
def stranger(tracked: Source) -> Iterator[Login]:
    """A login without any right but those that everybody has."""
    tracked.sql("DROP ROLE IF EXISTS stranger")
    tracked.sql("CREATE ROLE stranger LOGIN PASSWORD 'x'")
    with psycopg.connect(
        make_conninfo(tracked.dsn, user="stranger", password="x"), autocommit=True
    ) as connection:
        yield connection
    tracked.sql("DROP OWNED BY stranger")
    tracked.sql("DROP ROLE stranger")


@pytest.fixture
def tracked(source: Source) -> Source:
    """A database with a tracked table ``t``, whose own words have been read."""
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    source.track("t")
    source.pieces()
    return source


def forged(source: Source) -> list[bytes]:
    """Words that would end the table's capture, begin it anew or change its shape."""
    instance = source.instance("t")
    altered = (
        '{"event": "altered", "table_id": %d, "schema": "public", "table": "t", "columns": [], "ddl": ""}'
    )
    return [
        disabled_json(instance).encode(),
        enabled_json(instance).encode(),
        (altered % instance.source_object_id).encode(),
        b'{"event": "dropped", "table_id": %d, "ddl": ""}' % instance.source_object_id,
    ]


def test_what_a_stranger_writes_is_no_word(tracked: Source, stranger: Login) -> None:
    for word in forged(tracked):
        for prefix in ("highwater", "highwater.", f"highwater.{'0' * 64}", "highwater.mark"):
            stranger.execute(WRITE, [prefix, word])
    assert events(tracked) == []
    tracked.sql("ALTER TABLE t ADD n int")
    [told] = events(tracked)
    assert isinstance(told, TableAltered)


def test_a_word_written_again_is_none(tracked: Source, stranger: Login) -> None:
    """Whoever reads the log has its words with their seals: those of their transactions."""
    tracked.admin.disable_table(tracked.instance("t"), last_of_table=False)
    prefix, content = messages(tracked)[-1]
    [told] = events(tracked)
    assert isinstance(told, InstanceDisabled)
    tracked.admin.enable_table(tracked.instance("t", 2))
    assert [type(event) for event in events(tracked)] == [InstanceEnabled]
    stranger.execute(WRITE, [prefix, content])
    assert events(tracked) == []


def test_a_stranger_can_make_no_seal(tracked: Source, stranger: Login) -> None:
    for call in (
        "SELECT * FROM cdc.own_ddl",
        "SELECT * FROM cdc.seal_key",
        "SELECT * FROM cdc.unsealed_words",
        "SELECT cdc.seal(1, '')",
        "SELECT cdc.write_word('{}')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            stranger.execute(call)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        stranger.execute("INSERT INTO cdc.unsealed_words VALUES (9, 9)")


def test_words_stay_ours_whoever_reads_them(tracked: Source) -> None:
    """The reader of the log need not own what enabling made."""
    tracked.sql("DROP ROLE IF EXISTS reader_of_words")
    tracked.sql("CREATE ROLE reader_of_words LOGIN REPLICATION PASSWORD 'x'")
    tracked.sql("ALTER TABLE t ADD n int")
    dsn = make_conninfo(tracked.dsn, user="reader_of_words", password="x")
    log = tracked.another_log(dsn)
    told = [event for piece in tracked.pieces(log=log) for event in piece.events]
    assert [type(event) for event in told] == [TableAltered]
    log.close()
    tracked.sql("DROP ROLE reader_of_words")


@pytest.mark.parametrize("version", ["3_partitions", "4_versions"])
def test_after_an_upgrade_words_need_a_seal(tracked: Source, version: str) -> None:
    make_earlier(tracked.connection, version)
    tracked.sql("ALTER TABLE t ADD before int")
    with psycopg.connect(tracked.dsn) as open_since:
        open_since.execute(WRITE, ["highwater", b'{"event": "dropped", "table_id": 7, "ddl": "open since"}'])
        assert tracked.admin.upgrade([tracked.instance("t")])
    tracked.sql("ALTER TABLE t ADD after int")
    for word in forged(tracked):
        tracked.sql(WRITE, "highwater", word)
    told = [getattr(event, "ddl", None) for event in events(tracked)]
    assert told == ["ALTER TABLE t ADD before int", "open since", "ALTER TABLE t ADD after int"]


def test_an_upgrade_that_was_cut_short_is_ended_by_the_next(tracked: Source) -> None:
    tracked.sql("DELETE FROM cdc.unsealed_words")
    tracked.sql(WRITE, "highwater", b'{"event": "dropped", "table_id": 7, "ddl": "not yet demanded"}')
    assert len(events(tracked)) == 1
    assert tracked.admin.upgrade([])
    assert not tracked.admin.upgrade([])
    tracked.sql(WRITE, "highwater", b'{"event": "dropped", "table_id": 7, "ddl": "demanded"}')
    assert events(tracked) == []


def test_ids_of_the_server_a_dump_came_from_excuse_nothing(tracked: Source) -> None:
    tracked.sql("UPDATE cdc.unsealed_words SET below_xid = 1000000000000, system_identifier = 7")
    tracked.sql(WRITE, "highwater", forged(tracked)[0])
    assert events(tracked) == []


def test_an_id_is_the_one_nearest_to_those_of_now(tracked: Source) -> None:
    """The log has half of an id; a commit that still waits may be later than a snapshot."""
    [(following,)] = tracked.sql("SELECT txid_snapshot_xmax(txid_current_snapshot())")
    here = "(SELECT system_identifier FROM pg_control_system())"
    tracked.sql(f"UPDATE cdc.unsealed_words SET below_xid = %s, system_identifier = {here}", following - 1)
    ask = "SELECT cdc.are_own_words(array_fill('highwater'::text, '{4}'), %s, array_fill(''::bytea, '{4}'))"
    of_a_round_before = (following - 1000) % 2**32
    asked = [following - 2, following - 1, following + 5, of_a_round_before]
    assert tracked.sql(ask, asked) == [([True, False, False, True],)]


def test_a_commit_that_waits_for_a_standby_is_none_of_a_round_before(
    tracked: Source, stranger: Login
) -> None:
    """The log gives it before it has ended for others."""
    word = forged(tracked)[0]
    with psycopg.connect(stranger.info.dsn, password="x") as holder, ThreadPoolExecutor(1) as pool:
        holder.execute("SELECT txid_current()")
        tracked.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        tracked.sql("SELECT pg_reload_conf()")
        try:
            writing = pool.submit(stranger.execute, WRITE, ["highwater", word])
            waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid = %s"
            while not tracked.sql(waiting, stranger.info.backend_pid):
                if writing.done():  # before all of the server had read its settings anew
                    writing = pool.submit(stranger.execute, WRITE, ["highwater", word])
            assert events(tracked) == []
        finally:
            tracked.sql("ALTER SYSTEM RESET synchronous_standby_names")
            tracked.sql("SELECT pg_reload_conf()")
            writing.result(60)


def test_ddl_that_gets_its_id_while_an_upgrade_runs_is_told(
    tracked: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_earlier(tracked.connection, "4_versions")
    run_script = objects._run_script
    with psycopg.connect(tracked.dsn) as open_since:

        def run_and_alter(commands: Commands) -> None:
            run_script(commands)
            open_since.execute("ALTER TABLE t ADD during int")

        monkeypatch.setattr(objects, "_run_script", run_and_alter)
        assert tracked.admin.upgrade([tracked.instance("t")])
    assert [getattr(event, "ddl", None) for event in events(tracked)] == ["ALTER TABLE t ADD during int"]


def test_nobody_runs_code_of_his_own_as_the_owner(tracked: Source, stranger: Login) -> None:
    """Temporary relations and types come before those of pg_catalog unless pg_temp is named after it."""
    said: list[str | None] = []
    stranger.add_notice_handler(lambda notice: said.append(notice.message_primary))
    stranger.execute(
        "CREATE FUNCTION pg_temp.tell() RETURNS boolean LANGUAGE plpgsql"
        " AS 'BEGIN RAISE NOTICE ''%'', current_user; RETURN true; END'"
    )
    names = ("pg_class", "pg_namespace", "pg_trigger", "pg_index", "pg_publication_rel")
    for name in names:
        stranger.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM pg_catalog.{name} WHERE pg_temp.tell()")
    stranger.execute("SELECT cdc.check_after_ddl(NULL)")
    stranger.execute("SELECT cdc.is_own_ddl()")
    stranger.execute("SELECT * FROM cdc.are_own_words(ARRAY['highwater'], ARRAY[1], ARRAY[''::bytea])")
    assert said == []
    unsafe = tracked.sql(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'cdc'::regnamespace"
        " AND proname NOT IN ('before_ddl', 'version')"
        " AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY(proconfig), false)"
    )
    assert unsafe == []


def test_ddl_of_an_old_snapshot_fails_rather_than_tell_an_old_shape(tracked: Source) -> None:
    with psycopg.connect(tracked.dsn) as late:
        late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        late.execute("SELECT FROM pg_class")
        tracked.sql("ALTER TABLE t ADD first int")
        with pytest.raises(psycopg.errors.SerializationFailure):
            late.execute("ALTER TABLE t ADD second int")
        late.rollback()
        late.execute("ALTER TABLE t ADD second int")
        late.execute("ALTER TABLE t ADD third int")
    told = [event for event in events(tracked) if isinstance(event, TableAltered)]
    shapes = [[column.name for column in event.columns] for event in told]
    assert shapes == [["id", "first"], ["id", "first", "second"], ["id", "first", "second", "third"]]


@given(content=st.binary(max_size=300), xid=st.integers(min_value=0, max_value=2**63 - 1))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_seal_is_of_one_content_in_one_transaction(tracked: Source, content: bytes, xid: int) -> None:
    [(key,)] = tracked.sql("SELECT key FROM cdc.seal_key")
    assert len(key) == 32
    digest = sha256(content).digest()
    inner = sha256(key + (xid % 2**32).to_bytes(8, "big") + digest).digest()
    seal = sha256(key + inner).hexdigest()
    assert tracked.sql("SELECT cdc.seal(%s, %s)", xid, digest) == [(seal,)]
    ask = "SELECT cdc.are_own_words(ARRAY[%s], ARRAY[%s::bigint], ARRAY[%s::bytea])"
    other = sha256(content + b"x").digest()
    assert tracked.sql(ask, f"highwater.{seal}", xid % 2**32, digest) == [([True],)]
    assert tracked.sql(ask, f"highwater.{seal}", (xid + 1) % 2**32, digest) == [([False],)]
    assert tracked.sql(ask, f"highwater.{seal}", xid % 2**32, other) == [([False],)]
