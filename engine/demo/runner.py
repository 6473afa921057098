"""Carries the demo company's plan out on a database, at a given pace."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice

import psycopg
from psycopg import errors

from engine.demo.company import OPENING
from engine.demo.installation import Connection, connected
from engine.demo.workload import COMPANYS_OWN, Company, Generated, Statement, Transaction, workload
from engine.model.workload_mix import Mix


@dataclass(slots=True)
class Summary:
    """What a run did. ``refused``: transactions that met changes of others; they were rolled back too.

    ``rows`` counts rows changed by committed statements, by verb; rows changed by cascades are not in it.
    """

    seed: int
    committed: int = 0
    rolled_back: int = 0
    refused: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def line(self) -> str:
        """The summary in one line."""
        total = self.committed + self.rolled_back + self.refused
        rate = total / self.seconds if self.seconds else 0.0
        refused = f", {self.refused} refused" if self.refused else ""
        return (
            f"{total} transactions in {self.seconds:.1f} s ({rate:.1f}/s): {self.committed} committed,"
            f" {self.rolled_back} rolled back{refused}; {self.rows['INSERT']} rows inserted,"
            f" {self.rows['UPDATE']} updated, {self.rows['DELETE']} deleted; seed {self.seed}"
        )


def run(
    dsn: str,
    rate: float,
    seconds: float | None,
    seed: int,
    wait: Callable[[float], bool],
    clock: Callable[[], float] = time.monotonic,
    mix: Mix = COMPANYS_OWN,
) -> Summary:
    """Runs ``rate`` transactions a second for ``seconds`` (None: until stopped); the company is installed.

    rate × seconds transactions are run, however long the database takes for them: that is what makes
    a run repeatable. A mix that leaves nothing to do ends it. ``wait`` waits that many seconds and says
    whether to stop; it is asked before every transaction. Raises SourceUnreachable.
    """
    total = None if seconds is None else round(rate * seconds)
    summary = Summary(seed)
    begun = clock()
    with connected(dsn) as connection:
        connection.autocommit = False
        plan = islice(workload(read_company(connection), seed, mix), total)
        worker = _Worker(connection, summary)
        for transaction in _paced(plan, rate, mix.burst, wait, clock):
            worker.carry_out(transaction)
    summary.seconds = clock() - begun
    return summary


def read_company(connection: Connection) -> Company:
    """What the plan must know of this database."""
    newest = connection.execute('SELECT max("OrderDate") FROM "Sales"."SalesOrderHeader"').fetchone()
    places: dict[int, list[int]] = {}
    for product, location in connection.execute(
        'SELECT "ProductID", "LocationID" FROM "Production"."ProductInventory" ORDER BY 1, 2'
    ):
        places.setdefault(product, []).append(location)
    products = connection.execute(
        'SELECT "ProductID", "ListPrice" FROM "Production"."Product" ORDER BY 1'
    ).fetchall()
    departments = connection.execute(
        'SELECT "DepartmentID", "Name" FROM "HumanResources"."Department" ORDER BY 1'
    ).fetchall()
    company = Company(
        clock=newest[0] if newest and newest[0] else OPENING,
        departments=dict(departments),
        employees=_keys(connection, 'SELECT "BusinessEntityID" FROM "HumanResources"."Employee" ORDER BY 1'),
        customers=_keys(connection, 'SELECT "CustomerID" FROM "Sales"."Customer" ORDER BY 1'),
        prices={product: price for product, price in products if product in places},
        places=places,
        orders=_keys(
            connection,
            'SELECT "SalesOrderID" FROM "Sales"."SalesOrderHeader" WHERE "Status" = 1 ORDER BY 1 LIMIT 1000',
        ),
    )
    connection.rollback()
    return company


def _keys(connection: Connection, query: str) -> list[int | Generated]:
    return [row[0] for row in connection.execute(query.encode())]


def _paced(
    plan: Iterable[Transaction],
    rate: float,
    burst: int,
    wait: Callable[[float], bool],
    clock: Callable[[], float],
) -> Iterator[Transaction]:
    """The plan's transactions, the n-th not before n / rate seconds, or with those of its burst.

    It ends when ``wait`` says so.
    """
    begun = clock()
    for number, transaction in zip(count(), plan, strict=False):
        if wait(max(0.0, begun + number // burst * burst / rate - clock())):
            return
        yield transaction


class _Worker:
    """One connection's work: binds generated keys and keeps count."""

    def __init__(self, connection: Connection, summary: Summary) -> None:
        self._connection = connection
        self._summary = summary
        self._keys: dict[Generated, object] = {}

    def carry_out(self, transaction: Transaction) -> None:
        """Runs one transaction to its end, whichever that is."""
        rows: Counter[str] = Counter()
        try:
            for statement in transaction.statements:
                verb, changed = self._execute(statement)
                rows[verb] += changed
        except (psycopg.IntegrityError, errors.DeadlockDetected, errors.SerializationFailure):
            # Somebody else changes the company too: their row, or their key, was there first.
            self._connection.rollback()
            self._summary.refused += 1
            return
        if transaction.rolled_back:
            self._connection.rollback()
            self._summary.rolled_back += 1
        else:
            self._connection.commit()
            self._summary.committed += 1
            self._summary.rows += rows

    def _execute(self, statement: Statement) -> tuple[str, int]:
        cursor = self._connection.execute(
            statement.sql.encode(), [self._bound(v) for v in statement.parameters]
        )
        if statement.generates:
            row = cursor.fetchone()
            assert row is not None, "INSERT … RETURNING gives a row"
            self._keys[statement.generates] = row[0]
        return statement.sql.split(" ", 1)[0], cursor.rowcount

    def _bound(self, value: object) -> object:
        """A generated key's value; NULL when its row was refused: then no row matches."""
        return self._keys.get(value) if isinstance(value, Generated) else value
