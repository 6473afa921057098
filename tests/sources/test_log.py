"""The log reader against a real server: what is committed comes back, once, in order."""

from __future__ import annotations

from decimal import Decimal
from itertools import chain

import psycopg
import pytest

from engine.errors import LogBroken, ScanAlreadyRunning, SourceUnreachable
from engine.model.lsn import Lsn
from engine.sources.base import InstanceDisabled, InstanceEnabled, ReadLimit
from engine.sources.postgres.log import PostgresLog
from engine.sources.postgres.names import slot_name
from tests.sources.conftest import EVERYTHING, Source, changes_count, placed_rows

DROP_SLOT = (
    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
)


@pytest.fixture
def accounts(source: Source) -> Source:
    """A tracked table accounts(id, owner, amount); its enabling has been read."""
    source.sql("CREATE TABLE accounts (id int PRIMARY KEY, owner text, amount numeric(12,2))")
    source.track("accounts")
    source.pieces()
    return source


def test_operations_carry_their_images(accounts: Source) -> None:
    accounts.sql("INSERT INTO accounts VALUES (1, 'Ada', 10.50), (2, NULL, NULL)")
    accounts.sql("UPDATE accounts SET amount = -0.01 WHERE id = 1")
    accounts.sql("DELETE FROM accounts WHERE id = 2")
    assert accounts.rows() == [
        (2, 1, "Ada", Decimal("10.50")),
        (2, 2, None, None),
        (3, 1, "Ada", Decimal("10.50")),
        (4, 1, "Ada", Decimal("-0.01")),
        (1, 2, None, None),
    ]


def test_a_key_update_is_one_update_with_both_keys(accounts: Source) -> None:
    accounts.sql("INSERT INTO accounts VALUES (1, 'Ada', 1)")
    accounts.sql("UPDATE accounts SET id = 7")
    assert accounts.rows()[1:] == [(3, 1, "Ada", Decimal("1.00")), (4, 7, "Ada", Decimal("1.00"))]


def test_enabling_and_disabling_come_through_the_log(source: Source) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    instance = source.track("t", 5)
    source.admin.disable_table(instance, last_of_table=True)
    events = [event for piece in source.pieces() for event in piece.events]
    assert events[0] == InstanceEnabled(0, 0, instance)
    assert events[1] == InstanceDisabled(1, 0, "public_t", 5)


def test_commands_count_over_all_tables_and_counters_tell_rows_of_one_record_apart(accounts: Source) -> None:
    accounts.sql("CREATE TABLE notes (id int)")
    accounts.track("notes")
    accounts.pieces()
    with accounts.connection.transaction():
        accounts.sql("INSERT INTO notes VALUES (1)")
        with accounts.connection.cursor().copy("COPY accounts FROM STDIN") as copy:
            for n in range(5):
                copy.write_row((n, "x", n))
        accounts.sql("UPDATE notes SET id = 2")
    (piece,) = accounts.pieces()
    by_table = {changes.relation.table: changes for changes in piece.changes}
    assert by_table["notes"].command.tolist() == [1, 7, 7]
    assert by_table["accounts"].command.tolist() == [2, 3, 4, 5, 6]
    assert by_table["accounts"].counter.tolist() == [0, 1, 2, 3, 4]
    assert len(set(by_table["accounts"].position.tolist())) == 1


def test_rolled_back_work_does_not_occur(accounts: Source) -> None:
    with accounts.connection.transaction():
        accounts.sql("INSERT INTO accounts VALUES (1, 'kept', 1)")
        with pytest.raises(psycopg.errors.UniqueViolation), accounts.connection.transaction():
            accounts.sql("INSERT INTO accounts VALUES (2, 'lost', 2)")
            accounts.sql("INSERT INTO accounts VALUES (1, 'lost', 2)")
        with accounts.connection.transaction():
            accounts.sql("INSERT INTO accounts VALUES (3, 'kept', 3)")
    with pytest.raises(ZeroDivisionError), accounts.connection.transaction():
        accounts.sql("INSERT INTO accounts VALUES (4, 'lost', 4)")
        raise ZeroDivisionError
    assert [row[1] for row in accounts.rows()] == [1, 3]


def test_a_read_ends_at_maxtrans_and_the_next_goes_on(accounts: Source) -> None:
    for n in range(7):
        accounts.sql("INSERT INTO accounts VALUES (%s, 'x', 0), (%s, 'y', 0)", n, n + 100)
    seen = []
    while not seen or not accounts.log.exhausted:
        pieces = accounts.pieces(ReadLimit(maxtrans=3))
        assert sum(len(piece.transactions) for piece in pieces) <= 3
        seen.append([row[4] for row in placed_rows(pieces)])
    assert [len(ids) for ids in seen] == [6, 6, 2]
    assert list(chain.from_iterable(seen)) == [x for n in range(7) for x in (n, n + 100)]


def test_a_read_that_outlives_its_peek_gives_nothing_twice(accounts: Source) -> None:
    for n in range(3):
        accounts.sql("INSERT INTO accounts VALUES (%s, 'x', 0)", n)
    first = accounts.pieces(ReadLimit(maxtrans=1))
    accounts.sql("INSERT INTO accounts VALUES (3, 'x', 0)")
    # The peek of the first read has 1 and 2 left; 3 needs another.
    rest = accounts.pieces(ReadLimit(maxtrans=10))
    assert [row[4] for row in placed_rows(first + rest)] == [0, 1, 2, 3]
    assert accounts.log.exhausted


def test_a_large_transaction_comes_in_pieces(accounts: Source) -> None:
    accounts.sql("INSERT INTO accounts SELECT n, 'owner ' || n, n FROM generate_series(1, 5000) n")
    accounts.sql("INSERT INTO accounts VALUES (0, 'after', 0)")
    pieces = accounts.pieces(ReadLimit(maxtrans=500, piece_bytes=64 * 1024))
    assert len(pieces) > 5
    assert all(piece.open_tail for piece in pieces[:-2])
    assert len({piece.transactions[0] for piece in pieces}) == 1
    rows = placed_rows(pieces)
    assert [row[4] for row in rows] == [*range(1, 5001), 0]
    assert [row[1] for row in rows] == [*range(1, 5001), 1]
    counted = [
        (int(position), int(counter))
        for piece in pieces
        for changes in piece.changes
        for position, counter in zip(changes.position, changes.counter, strict=True)
    ]
    assert len(set(counted)) == 5001


@pytest.mark.parametrize("piece_bytes", [1, 300, 1000, 64 * 1024 * 1024])
def test_pieces_of_any_size_hold_the_same_rows(accounts: Source, piece_bytes: int) -> None:
    for n in range(20):
        accounts.sql(
            "INSERT INTO accounts SELECT n, 'x', n FROM generate_series(%s::int, %s::int) n",
            n * 10,
            n * 10 + n % 4,
        )
    accounts.sql("DELETE FROM accounts WHERE id < 50")
    after = accounts.after
    whole = placed_rows(accounts.pieces())
    assert len(whole) == 61
    accounts.after = after
    assert placed_rows(accounts.pieces(ReadLimit(7, piece_bytes))) != []
    accounts.after, parts = after, []
    while not parts or not accounts.log.exhausted:
        parts += accounts.pieces(ReadLimit(7, piece_bytes))
    assert placed_rows(parts) == whole


@pytest.mark.parametrize("restarting", [False, True])
def test_confirming_a_commit_loses_nothing_that_follows(accounts: Source, restarting: bool) -> None:
    # The next transaction's first record starts exactly where the confirmed commit ends.
    for n in range(10):
        accounts.sql("INSERT INTO accounts VALUES (%s, 'x', 0)", n)
    read = []
    for _ in range(10):
        (piece,) = accounts.pieces(ReadLimit(maxtrans=1))
        read += [row[4] for row in placed_rows([piece])]
        log = accounts.another_log() if restarting else accounts.log
        log.confirm(accounts.after)
        accounts.log = log
    assert read == [*range(10)]
    assert accounts.pieces() == []


def test_confirming_a_log_end_loses_nothing_that_follows(accounts: Source) -> None:
    for n in range(5):
        accounts.pieces()
        end = accounts.log.log_end()
        list(accounts.log.read(accounts.after, end, EVERYTHING))
        assert accounts.log.exhausted
        accounts.log.confirm(end)
        assert accounts.log.slot_state().confirmed == end
        accounts.sql("INSERT INTO accounts VALUES (%s, 'x', 0)", n)
        assert [row[1] for row in accounts.rows()] == [n]


def test_a_backlog_that_was_confirmed_is_not_decoded_again_and_again(accounts: Source) -> None:
    if accounts.connection.info.server_version < 160000:
        pytest.skip("before PostgreSQL 16 only the server itself can move the place, every 15 seconds")
    lags = []
    for _ in range(6):
        accounts.sql("INSERT INTO accounts SELECT n, repeat('x', 1000), n FROM generate_series(1, 9000) n")
        accounts.sql("DELETE FROM accounts")
        accounts.pieces()
        accounts.log.confirm(accounts.after)
        state = accounts.log.slot_state()
        lags.append(state.confirmed.position - state.restart.position)
    # Some 20 MB each; only the server's own words every 15 seconds would let it grow on.
    assert max(lags) < 4 * 20 * 1024 * 1024
    assert lags[-1] < 3 * 20 * 1024 * 1024


def test_a_log_that_gives_again_what_was_published_goes_on(accounts: Source) -> None:
    for n in range(3):
        accounts.sql("INSERT INTO accounts VALUES (%s, 'x', 0)", n)
    commits = [t.commit_lsn for piece in accounts.pieces() for t in piece.transactions]
    accounts.sql("CREATE TABLE elsewhere (id int)")
    accounts.admin.mark()
    end = accounts.log.log_end()
    for log in (accounts.log, accounts.another_log()):
        log.check_goes_on(commits[-1], end)
        log.check_goes_on(commits[-1], commits[-1])
    accounts.log.confirm(commits[0])
    for published, scanned in ((commits[0], commits[0]), (commits[1], commits[1]), (commits[2], end)):
        accounts.log.check_goes_on(published, scanned)
    accounts.log.confirm(end)
    accounts.log.check_goes_on(commits[-1], end)


def test_a_log_with_other_commits_than_were_read_is_broken(accounts: Source) -> None:
    for n in range(3):
        accounts.sql("INSERT INTO accounts VALUES (%s, 'x', 0)", n)
    first, second, third = (t.commit_lsn for piece in accounts.pieces() for t in piece.transactions)
    end = accounts.log.log_end()
    for published, scanned, words in (
        (
            Lsn.at(second.position - 1),
            second,
            f"the commit at {Lsn.at(second.position - 1)} is not in its log",
        ),
        (second, end, f"the commit at {third} is new below {end}"),
        (None, second, f"the commit at {first} is new below {second}"),
        (third, Lsn.at(end.position + 1_000_000_000), "the log ends at"),
    ):
        with pytest.raises(LogBroken, match=words):
            accounts.log.check_goes_on(published, scanned)
    accounts.log.confirm(end)
    with pytest.raises(LogBroken, match=f"only {second} was reached"):
        accounts.log.check_goes_on(second, second)


def test_confirming_backwards_is_no_error(accounts: Source) -> None:
    accounts.log.confirm(accounts.log.log_end())
    confirmed = accounts.log.slot_state().confirmed
    accounts.log.confirm(accounts.after)
    accounts.log.confirm(Lsn.ZERO)
    assert accounts.log.slot_state().confirmed == confirmed


def test_a_restart_reads_on_after_any_commit(accounts: Source) -> None:
    for n in range(6):
        accounts.sql("INSERT INTO accounts VALUES (%s, 'x', 0)", n)
    after, whole = accounts.after, accounts.pieces()
    commits = [t.commit_lsn for piece in whole for t in piece.transactions]
    for place, commit in enumerate([after, *commits]):
        log = accounts.another_log()
        rows = placed_rows(list(log.read(commit, log.log_end(), EVERYTHING)))
        assert rows == placed_rows(whole)[place:]


def test_marks_and_foreign_messages_are_no_transactions(accounts: Source) -> None:
    accounts.admin.mark()
    accounts.sql("SELECT pg_logical_emit_message(true, 'somebody', 'x')")
    accounts.sql("SELECT pg_logical_emit_message(false, 'highwater', 'x')")
    accounts.sql("SELECT pg_logical_emit_message(true, 'highwater', 'no json')")
    accounts.sql("SELECT pg_logical_emit_message(true, 'highwater', '{\"event\": \"enabled\"}')")
    assert accounts.pieces() == []
    assert accounts.log.exhausted


def test_what_was_committed_before_a_mark_is_below_it(accounts: Source) -> None:
    accounts.sql("SET synchronous_commit = off")
    accounts.sql("INSERT INTO accounts VALUES (1, 'x', 0)")
    mark = accounts.admin.mark()
    assert accounts.log.log_end() >= mark
    (piece,) = accounts.log.read(accounts.after, mark, EVERYTHING)
    assert changes_count([piece]) == 1
    assert piece.transactions[0].commit_lsn < mark


def test_a_changed_shape_begins_a_new_batch(accounts: Source) -> None:
    with accounts.connection.transaction():
        accounts.sql("INSERT INTO accounts VALUES (1, 'x', 0)")
        accounts.sql("ALTER TABLE accounts ADD COLUMN note text DEFAULT 'none'")
        accounts.sql("INSERT INTO accounts VALUES (2, 'x', 0, 'new')")
    accounts.sql("ALTER TABLE accounts DROP COLUMN owner")
    accounts.sql("INSERT INTO accounts VALUES (3, 0, 'last')")
    first, *others = [changes for piece in accounts.pieces() for changes in piece.changes]
    shapes = [[column.name for column in changes.relation.columns] for changes in (first, *others)]
    assert shapes == [["id", "owner", "amount"], ["id", "owner", "amount", "note"], ["id", "amount", "note"]]


def test_an_unchanged_toasted_value_is_taken_from_the_old_row(source: Source) -> None:
    source.sql("CREATE TABLE documents (id int PRIMARY KEY, n int, body text, raw bytea)")
    source.sql("ALTER TABLE documents ALTER body SET STORAGE EXTERNAL, ALTER raw SET STORAGE EXTERNAL")
    source.track("documents")
    source.pieces()
    source.sql("INSERT INTO documents VALUES (1, 1, repeat('é', 50000), decode(repeat('ab', 30000), 'hex'))")
    source.sql("UPDATE documents SET n = 2")
    inserted, before, now = source.rows()
    assert inserted[1:] == before[1:] == (1, 1, "é" * 50000, b"\xab" * 30000)
    assert now == (4, 1, 2, "é" * 50000, b"\xab" * 30000)


def test_an_update_without_an_old_row_has_no_before_image(accounts: Source) -> None:
    accounts.sql("INSERT INTO accounts VALUES (1, 'x', 0)")
    accounts.sql("DROP EVENT TRIGGER highwater_ddl")
    accounts.sql("ALTER TABLE accounts REPLICA IDENTITY DEFAULT")
    accounts.sql("UPDATE accounts SET owner = 'y'")
    accounts.sql("UPDATE accounts SET id = 2")
    accounts.sql("DELETE FROM accounts")
    assert accounts.rows()[1:] == [
        (3, None, None, None),
        (4, 1, "y", Decimal("0.00")),
        (3, 1, None, None),
        (4, 2, "y", Decimal("0.00")),
        (1, 2, None, None),
    ]


def test_two_slots_read_the_same(accounts: Source) -> None:
    accounts.sql("SELECT pg_create_logical_replication_slot('second_slot', 'pgoutput')")
    accounts.sql("INSERT INTO accounts SELECT n, 'x', n FROM generate_series(1, 100) n")
    second = PostgresLog(accounts.dsn, "second_slot", "highwater")
    accounts.opened.append(second)
    after, first = accounts.after, placed_rows(accounts.pieces())
    assert placed_rows(list(second.read(after, second.log_end(), EVERYTHING))) == first
    assert second.identity().system_identifier == accounts.log.identity().system_identifier


def test_partitions_are_read_as_their_root(source: Source) -> None:
    source.sql("CREATE TABLE events (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)")
    source.sql("CREATE TABLE events_low PARTITION OF events FOR VALUES FROM (0) TO (10)")
    source.sql("CREATE TABLE events_high (v text, id int NOT NULL)")
    source.sql("ALTER TABLE events ATTACH PARTITION events_high FOR VALUES FROM (10) TO (20)")
    source.track("events")
    source.pieces()
    source.sql("INSERT INTO events VALUES (1, 'a'), (11, 'b')")
    source.sql("UPDATE events SET v = 'c'")
    assert source.rows() == [
        (2, 1, "a"),
        (2, 11, "b"),
        (3, 1, "a"),
        (4, 1, "c"),
        (3, 11, "b"),
        (4, 11, "c"),
    ]


def test_an_abandoned_read_is_read_again(accounts: Source) -> None:
    accounts.sql("INSERT INTO accounts SELECT n, 'x', n FROM generate_series(1, 3000) n")
    reading = accounts.log.read(accounts.after, accounts.log.log_end(), ReadLimit(10, 4096))
    next(reading)
    next(reading)
    reading.close()
    assert changes_count(accounts.pieces()) == 3000


def test_a_lost_slot_breaks_the_log(accounts: Source) -> None:
    assert accounts.log.identity().timeline == 1
    accounts.sql(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
        "WHERE database = current_database()"
    )
    with pytest.raises(LogBroken, match="does not exist"):
        accounts.log.identity()
    with pytest.raises(LogBroken, match="does not exist"):
        accounts.pieces()


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(
    "meddle",
    [
        "SELECT pg_create_logical_replication_slot(slot_name, 'pgoutput')"
        " FROM (SELECT slot_name, pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        " WHERE database = current_database() OFFSET 0)",
        "SELECT pg_replication_slot_advance(slot_name, pg_current_wal_flush_lsn())"
        " FROM pg_replication_slots WHERE database = current_database()",
    ],
    ids=["made anew", "moved on"],
)
def test_a_slot_that_was_meddled_with_between_two_reads_breaks_the_log(
    accounts: Source, meddle: str, restarted: bool
) -> None:
    accounts.sql("INSERT INTO accounts VALUES (1, 'x', 0)")
    assert len(accounts.rows()) == 1
    if restarted:
        accounts.log = accounts.another_log()
        accounts.log.check_goes_on(accounts.after, accounts.log.log_end())
    accounts.log.confirm(accounts.log.log_end())
    accounts.sql("INSERT INTO accounts VALUES (2, 'left out', 0)")
    accounts.sql(meddle)
    accounts.sql("INSERT INTO accounts VALUES (3, 'x', 0)")
    with pytest.raises(LogBroken, match="was moved on or made anew"):
        accounts.rows()


def test_a_slot_that_somebody_else_reads_is_refused(accounts: Source) -> None:
    accounts.sql(DROP_SLOT)
    slot = slot_name(accounts.connection.info.dbname)
    # A temporary slot is held by the session that made it.
    accounts.sql("SELECT pg_create_logical_replication_slot(%s, 'pgoutput', true)", slot)
    with pytest.raises(ScanAlreadyRunning, match="active for PID"):
        accounts.pieces()
    with pytest.raises(ScanAlreadyRunning, match="active for PID"):
        accounts.log.confirm(accounts.admin.mark())


def test_a_server_that_does_not_answer_is_unreachable() -> None:
    log = PostgresLog("postgresql://nobody@localhost:1/none?connect_timeout=1", "s", "p")
    with pytest.raises(SourceUnreachable, match="none"):
        log.log_end()


def test_a_cut_connection_is_unreachable_and_the_next_read_works(accounts: Source) -> None:
    accounts.sql("INSERT INTO accounts VALUES (1, 'x', 0)")
    accounts.log.log_end()
    accounts.sql(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE application_name LIKE 'highwater%%' "
        "AND datname = current_database() AND pid <> pg_backend_pid()"
    )
    with pytest.raises(SourceUnreachable):
        accounts.log.log_end()
    assert changes_count(accounts.pieces()) == 1


def test_a_read_that_needs_a_second_peek_gives_no_transaction_twice(source):
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    source.track("t")
    source.pieces()
    for number in range(3):
        source.sql(f"INSERT INTO t VALUES ({number})")
    source.pieces(ReadLimit(maxtrans=2))
    source.sql("CREATE TABLE elsewhere (x int)")
    assert [len(piece.transactions) for piece in source.pieces(ReadLimit(maxtrans=2))] == [1]
