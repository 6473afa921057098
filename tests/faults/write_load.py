"""A seeded load of mixed transactions: what a database's day holds, savepoints and rollbacks included."""

from __future__ import annotations

import random
from collections.abc import Callable
from threading import Event, Thread

import psycopg

from tests.faults.oracle import Table, boolean, moment, number

SCHEMA = """
CREATE TABLE account (
    id int PRIMARY KEY, owner text, balance numeric(12, 2), open boolean,
    changed timestamptz DEFAULT clock_timestamp());
CREATE TABLE item (sku text, place int, qty int, PRIMARY KEY (sku, place));
CREATE TABLE note (body text);
CREATE TABLE uncaptured (id serial, body text)
"""
TABLES = (
    Table(
        "public.account",
        {"id": int, "owner": str, "balance": number, "open": boolean, "changed": moment},
        ("id",),
    ),
    Table("public.item", {"sku": str, "place": int, "qty": int}, ("sku", "place")),
    Table("public.note", {"body": str}),
)
_RANGE = 60


class WriteLoad:
    """Transactions of one writer, the same for the same seed and the same answers of the server."""

    def __init__(self, dsn: str, seed: int) -> None:
        self._dsn = dsn
        self._random = random.Random(seed)
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.committed = 0

    def transactions(self, count: int) -> None:
        """So many transactions, one after the other."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            for _ in range(count):
                self._transaction(connection)

    def start(self) -> None:
        """Goes on in a thread until `stop`, whatever happens to the server."""
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with psycopg.connect(self._dsn, autocommit=True) as connection:
                    while not self._stop.wait(0.08):
                        self._transaction(connection)
            except psycopg.OperationalError:
                self._stop.wait(0.1)

    def _transaction(self, connection: psycopg.Connection) -> None:
        steps = [self._random.choice(self._steps) for _ in range(self._random.randint(1, 6))]
        rolled_back = self._random.random() < 0.1
        try:
            with connection.transaction(force_rollback=rolled_back):
                for step in steps:
                    self._savepoint(connection, step)
            self.committed += 1
        except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
            pass

    def _savepoint(
        self, connection: psycopg.Connection, step: Callable[[WriteLoad, psycopg.Connection], None]
    ) -> None:
        fate = self._random.random()
        if fate < 0.7:
            step(self, connection)
            return
        with connection.transaction(force_rollback=fate > 0.85):
            step(self, connection)

    def _number(self) -> int:
        return self._random.randrange(_RANGE)

    def _insert(self, connection: psycopg.Connection) -> None:
        values = [self._number(), self._random.choice([None, "", "Ä 'b'", "x" * 3000]), self._number() / 4]
        connection.execute("INSERT INTO account VALUES (%s, %s, %s, true) ON CONFLICT DO NOTHING", values)

    def _insert_many(self, connection: psycopg.Connection) -> None:
        connection.execute(
            "INSERT INTO item SELECT 's' || n, %s, n FROM generate_series(1, %s) n ON CONFLICT DO NOTHING",
            [self._number() % 8, self._number()],
        )

    def _copy(self, connection: psycopg.Connection) -> None:
        with connection.cursor().copy("COPY note FROM STDIN") as copy:
            for _ in range(self._random.randint(1, 40)):
                copy.write_row([self._random.choice([None, "a", "b\tc", str(self._number())])])

    def _update(self, connection: psycopg.Connection) -> None:
        connection.execute(
            "UPDATE account SET balance = balance + 1, open = NOT open, changed = clock_timestamp() "
            "WHERE id = %s",
            [self._number()],
        )

    def _update_nothing(self, connection: psycopg.Connection) -> None:
        connection.execute("UPDATE item SET qty = qty WHERE place = %s", [self._number() % 8])

    def _update_many(self, connection: psycopg.Connection) -> None:
        connection.execute("UPDATE item SET qty = qty + 1 WHERE place = %s", [self._number() % 8])

    def _update_without_key(self, connection: psycopg.Connection) -> None:
        connection.execute("UPDATE note SET body = body || '.' WHERE body = %s", [str(self._number())])

    def _move(self, connection: psycopg.Connection) -> None:
        """An update of the row identifier."""
        connection.execute(
            "UPDATE account SET id = %(to)s WHERE id = %(of)s "
            "AND NOT EXISTS (SELECT FROM account WHERE id = %(to)s)",
            {"of": self._number(), "to": self._number()},
        )

    def _delete(self, connection: psycopg.Connection) -> None:
        connection.execute("DELETE FROM account WHERE id = %s", [self._number()])

    def _delete_many(self, connection: psycopg.Connection) -> None:
        connection.execute("DELETE FROM item WHERE place = %s", [self._number() % 8])

    def _elsewhere(self, connection: psycopg.Connection) -> None:
        connection.execute("INSERT INTO uncaptured (body) VALUES ('x')")

    _steps = (
        _insert, _insert, _insert, _insert_many, _copy, _update, _update, _update, _update_nothing,
        _update_many, _update_without_key, _move, _move, _delete, _delete_many, _elsewhere,
    )  # fmt: skip
