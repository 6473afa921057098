"""Who may write into a log may write what looks like Highwater's words: they are told by their seal."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

from engine.sources.base import InstanceDisabled, InstanceEnabled, LogEvent, TableAltered
from engine.sources.postgres.log_messages import disabled_json, enabled_json
from engine.sources.postgres.pgoutput import emitted_message
from tests.sources.conftest import Source
from tests.sources.earlier import make_earlier

WRITE = "SELECT pg_logical_emit_message(true, %s, %s::bytea)"
M = ord("M")


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
def stranger(tracked: Source) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
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


def test_what_a_stranger_writes_is_no_word(
    tracked: Source, stranger: psycopg.Connection[tuple[object, ...]]
) -> None:
    for word in forged(tracked):
        for prefix in ("highwater", "highwater.", f"highwater.{'0' * 64}", "highwater.mark"):
            stranger.execute(WRITE, [prefix, word])
    assert events(tracked) == []
    tracked.sql("ALTER TABLE t ADD n int")
    [told] = events(tracked)
    assert isinstance(told, TableAltered)


def test_a_word_written_again_is_none(
    tracked: Source, stranger: psycopg.Connection[tuple[object, ...]]
) -> None:
    """Whoever reads the log has its words with their seals: those of their transactions."""
    tracked.admin.disable_table(tracked.instance("t"), last_of_table=False)
    prefix, content = messages(tracked)[-1]
    [told] = events(tracked)
    assert isinstance(told, InstanceDisabled)
    tracked.admin.enable_table(tracked.instance("t", 2))
    assert [type(event) for event in events(tracked)] == [InstanceEnabled]
    stranger.execute(WRITE, [prefix, content])
    assert events(tracked) == []


def test_a_stranger_can_make_no_seal(
    tracked: Source, stranger: psycopg.Connection[tuple[object, ...]]
) -> None:
    for call in (
        "SELECT * FROM cdc.own_ddl",
        "SELECT * FROM cdc.unsealed_words",
        "SELECT cdc.seal(1, '')",
        "SELECT cdc.write_word('{}')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            stranger.execute(call)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        stranger.execute("INSERT INTO cdc.unsealed_words VALUES (9)")


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
def test_after_an_upgrade_words_need_a_seal(source: Source, version: str) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    source.track("t")
    source.pieces()
    make_earlier(source.connection, version)
    source.sql("ALTER TABLE t ADD before int")
    with psycopg.connect(source.dsn) as open_since:
        open_since.execute(WRITE, ["highwater", b'{"event": "dropped", "table_id": 7, "ddl": "open since"}'])
        assert source.admin.upgrade([source.instance("t")])
    source.sql("ALTER TABLE t ADD after int")
    for word in forged(source):
        source.sql(WRITE, "highwater", word)
    told = [getattr(event, "ddl", None) for event in events(source)]
    assert told == ["ALTER TABLE t ADD before int", "open since", "ALTER TABLE t ADD after int"]


def test_an_upgrade_that_was_cut_short_is_ended_by_the_next(source: Source) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    source.track("t")
    source.pieces()
    source.sql("DELETE FROM cdc.unsealed_words")
    source.sql(WRITE, "highwater", b'{"event": "dropped", "table_id": 7, "ddl": "not yet demanded"}')
    assert len(events(source)) == 1
    assert source.admin.upgrade([])
    assert not source.admin.upgrade([])
    source.sql(WRITE, "highwater", b'{"event": "dropped", "table_id": 7, "ddl": "demanded"}')
    assert events(source) == []


def test_ids_of_the_server_a_dump_came_from_excuse_nothing(tracked: Source) -> None:
    tracked.sql("UPDATE cdc.unsealed_words SET below_xid = 1000000000000")
    tracked.sql(WRITE, "highwater", forged(tracked)[0])
    assert events(tracked) == []


def test_ids_beyond_the_32nd_bit_are_those_of_the_last_round(tracked: Source) -> None:
    """The log has the lower half of an id alone."""
    [(following,)] = tracked.sql("SELECT txid_snapshot_xmax(txid_current_snapshot())")
    tracked.sql("UPDATE cdc.unsealed_words SET below_xid = %s", following - 1)
    ask = "SELECT cdc.are_own_words(array_fill('highwater'::text, '{3}'), %s, array_fill(''::bytea, '{3}'))"
    # The last one is beyond what comes next: it can only be of a round before, if there was one.
    assert tracked.sql(ask, [following - 2, following - 1, following + 5]) == [([True, False, True],)]


@given(content=st.binary(max_size=300), xid=st.integers(min_value=0, max_value=2**63 - 1))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_seal_is_of_one_content_in_one_transaction(tracked: Source, content: bytes, xid: int) -> None:
    [(word,)] = tracked.sql("SELECT word FROM cdc.own_ddl")
    key = UUID(word).bytes
    inner = sha256(key + (xid % 2**32).to_bytes(8, "big") + content).digest()
    seal = sha256(key + inner).hexdigest()
    assert tracked.sql("SELECT cdc.seal(%s, %s)", xid, content) == [(seal,)]
    ask = "SELECT cdc.are_own_words(ARRAY[%s], ARRAY[%s::bigint], ARRAY[%s::bytea])"
    assert tracked.sql(ask, f"highwater.{seal}", xid % 2**32, content) == [([True],)]
    assert tracked.sql(ask, f"highwater.{seal}", (xid + 1) % 2**32, content) == [([False],)]
    assert tracked.sql(ask, f"highwater.{seal}", xid % 2**32, content + b"x") == [([False],)]
