"""What happens in the demo company: an endless plan of transactions, pure and made by a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypeVar

from engine.demo import names
from engine.demo.company import (
    DETAIL_COLUMNS,
    EMPLOYEE_COLUMNS,
    ORDER_COLUMNS,
    detail_row,
    guid,
    login,
    order_lines,
    order_row,
)
from engine.model.workload_mix import Mix

T = TypeVar("T")

COMPANYS_OWN = Mix()

OPEN_ORDERS_KEPT = 2000
ROLLED_BACK = 0.04
"""The part of all transactions that end in a rollback."""
_IN_VAIN = 1000
"""After so many transactions without a statement nothing is left to do."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A key that the database will have generated when a statement that uses it runs."""

    number: int


Key = int | Generated


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL with ``%s`` places; ``generates`` stands for the key that it returns."""

    sql: str
    parameters: tuple[object, ...] = ()
    generates: Generated | None = None


@dataclass(frozen=True, slots=True)
class Transaction:
    """Statements that are committed, or rolled back, together."""

    kind: str
    statements: tuple[Statement, ...]
    rolled_back: bool = False


@dataclass(slots=True)
class Company:
    """What the plan knows of the database: keys, prices and the company's clock.

    departments: name of each; prices: list price of each product; places: locations of each product;
    orders: those neither shipped nor cancelled.
    """

    clock: datetime
    departments: dict[int, str]
    employees: list[Key]
    customers: list[Key]
    prices: dict[int, Decimal]
    places: dict[int, list[int]]
    orders: list[Key]


def workload(company: Company, seed: int, mix: Mix = COMPANYS_OWN) -> Iterator[Transaction]:
    """Transactions without end, or until there is nothing left to do; the same company, seed and mix give
    the same ones.

    ``company`` is kept up to date as the plan goes, on the assumption that every transaction succeeds.
    """
    return iter(_Plan(company, seed, mix))


@dataclass(slots=True)
class _Plan:
    """One course of events. A transaction's effects on ``company`` wait until it is not rolled back."""

    company: Company
    seed: int
    mix: Mix
    rng: random.Random = field(init=False)
    statements: list[Statement] = field(init=False, default_factory=list)
    effects: list[Callable[[], None]] = field(init=False, default_factory=list)
    generated: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        # The state goes into the seed: a second run on one database is another course of events.
        company = self.company
        self.rng = random.Random(
            f"{self.seed} {company.clock} {len(company.employees)} {len(company.customers)}"
        )

    def __iter__(self) -> Iterator[Transaction]:
        weights = kind_weights(self.mix)
        kinds, in_vain = list(weights), 0
        while in_vain < _IN_VAIN and kinds:
            kind = self.rng.choices(kinds, list(weights.values()))[0]
            rolled_back = self.rng.random() < ROLLED_BACK
            self.company.clock += timedelta(seconds=self.rng.randrange(1, 20))
            self.statements, self.effects = [], []
            self.act(kind, rolled_back)
            for _ in range(self.mix.rows - 1):
                if len(self.statements) < self.mix.rows:
                    self.act(self.rng.choices(kinds, list(weights.values()))[0], rolled_back)
            in_vain = 0 if self.statements else in_vain + 1
            if self.statements:
                yield Transaction(kind, tuple(self.statements), rolled_back)

    def act(self, kind: str, rolled_back: bool) -> None:
        """One thing that happens: its statements, and what is true after them once they are committed."""
        _KINDS[kind].plan(self)
        effects, self.effects = self.effects, []
        if not rolled_back:
            for effect in effects:
                effect()

    # Sales

    def place_order(self) -> None:
        """An order with its lines, each taken from stock."""
        company, rng = self.company, self.rng
        seller = rng.choice(company.employees) if rng.random() < 0.3 else None
        lines = order_lines(rng, list(company.prices), company.prices.__getitem__)
        values = order_row(rng, lines, company.clock, rng.choice(company.customers), seller)
        order = self.insert("Sales", "SalesOrderHeader", ORDER_COLUMNS, values, "SalesOrderID")
        for line in lines:
            detail = (order, *detail_row(rng, line, company.clock))
            self.insert("Sales", "SalesOrderDetail", ("SalesOrderID", *DETAIL_COLUMNS), detail)
            if "Production" not in self.mix.of:
                continue
            place = rng.choice(company.places[line.product])
            self.run(
                'UPDATE "Production"."ProductInventory" SET "Quantity" = GREATEST("Quantity" - %s, 0),'
                ' "ModifiedDate" = %s WHERE "ProductID" = %s AND "LocationID" = %s',
                line.quantity, company.clock, line.product, place,
            )  # fmt: skip
        self.then(lambda: company.orders.append(order))
        self.then(lambda: del_from(company.orders, 0, len(company.orders) - OPEN_ORDERS_KEPT))

    def amend_order(self) -> None:
        """One piece more of every line, and the header's amounts after it."""
        order = self.some_order(keep=True)
        self.run(
            'UPDATE "Sales"."SalesOrderDetail" SET "OrderQty" = "OrderQty" + 1, "ModifiedDate" = %s'
            ' WHERE "SalesOrderID" = %s',
            self.company.clock, order,
        )  # fmt: skip
        self.run(
            'UPDATE "Sales"."SalesOrderHeader" SET "RevisionNumber" = "RevisionNumber" + 1, "SubTotal" ='
            ' (SELECT coalesce(sum("LineTotal"), 0) FROM "Sales"."SalesOrderDetail" d'
            ' WHERE d."SalesOrderID" = %s), "ModifiedDate" = %s WHERE "SalesOrderID" = %s',
            order, self.company.clock, order,
        )  # fmt: skip

    def ship_order(self) -> None:
        """An order leaves the house."""
        self.run(
            'UPDATE "Sales"."SalesOrderHeader" SET "Status" = 5, "ShipDate" = %s, "ModifiedDate" = %s'
            ' WHERE "SalesOrderID" = %s',
            self.company.clock, self.company.clock, self.some_order(),
        )  # fmt: skip

    def cancel_order(self) -> None:
        """An order goes, lines first."""
        order = self.some_order()
        self.run('DELETE FROM "Sales"."SalesOrderDetail" WHERE "SalesOrderID" = %s', order)
        self.run('DELETE FROM "Sales"."SalesOrderHeader" WHERE "SalesOrderID" = %s', order)

    def win_customer(self) -> None:
        """A new customer."""
        company, rng = self.company, self.rng
        values = (
            f"{rng.choice(names.LAST_NAMES)} {rng.choice(names.TRADES)}",
            f"N{rng.randrange(10**9):09d}",
            rng.choice(names.CITIES),
            None,
            company.clock,
        )
        columns = ("Name", "AccountNumber", "City", "EmailAddress", "ModifiedDate")
        customer = self.insert("Sales", "Customer", columns, values, "CustomerID")
        self.then(lambda: company.customers.append(customer))

    def change_address(self) -> None:
        """A customer's address for mail appears, changes or goes."""
        email = self.rng.choice((None, f"office{self.rng.randrange(10_000)}@quay.example"))
        self.run(
            'UPDATE "Sales"."Customer" SET "EmailAddress" = %s, "ModifiedDate" = %s WHERE "CustomerID" = %s',
            email, self.company.clock, self.rng.choice(self.company.customers),
        )  # fmt: skip

    # Production

    def move_stock(self) -> None:
        """Pieces of one product from one of its locations to another."""
        product, places = self.some_product()
        taken, given = self.rng.sample(places, 2) if len(places) > 1 else (places[0], places[0])
        pieces = self.rng.randrange(1, 50)
        for place, change in ((taken, -pieces), (given, pieces)):
            self.run(
                'UPDATE "Production"."ProductInventory" SET "Quantity" = "Quantity" + %s, "ModifiedDate" = %s'
                ' WHERE "ProductID" = %s AND "LocationID" = %s',
                change, self.company.clock, product, place,
            )  # fmt: skip

    def receive_goods(self) -> None:
        """A delivery fills up several products."""
        products = self.rng.sample(list(self.company.places), 5)
        for product in products:
            self.run(
                'UPDATE "Production"."ProductInventory" SET "Quantity" = "Quantity" + %s, "ModifiedDate" = %s'
                ' WHERE "ProductID" = %s AND "LocationID" = %s',
                self.rng.randrange(20, 200), self.company.clock, product, self.company.places[product][0],
            )  # fmt: skip

    def relocate_stock(self) -> None:
        """All of a product at one location goes to a location that had none: the key changes."""
        product, places = self.some_product()
        free = [number for number in range(1, len(names.LOCATIONS) + 1) if number not in places]
        if not free:
            return
        old, new = self.rng.choice(places), self.rng.choice(free)
        self.run(
            'UPDATE "Production"."ProductInventory" SET "LocationID" = %s, "Shelf" = %s, "ModifiedDate" = %s'
            ' WHERE "ProductID" = %s AND "LocationID" = %s',
            new, self.rng.choice("ABCDEFGH"), self.company.clock, product, old,
        )  # fmt: skip
        self.then(lambda: places.__setitem__(places.index(old), new))

    def change_price(self) -> None:
        """A product's list price, with its history."""
        product = self.rng.choice(list(self.company.prices))
        factor = Decimal(self.rng.randrange(90, 113)) / 100
        price = max(round(self.company.prices[product] * factor, 2), Decimal(1))
        clock = self.company.clock
        self.run(
            'UPDATE "Production"."Product" SET "ListPrice" = %s, "ModifiedDate" = %s WHERE "ProductID" = %s',
            price, clock, product,
        )  # fmt: skip
        self.run(
            'UPDATE "Production"."ProductListPriceHistory" SET "EndDate" = %s, "ModifiedDate" = %s'
            ' WHERE "ProductID" = %s AND "EndDate" IS NULL',
            clock, clock, product,
        )  # fmt: skip
        columns = ("ProductID", "StartDate", "EndDate", "ListPrice", "ModifiedDate")
        self.insert("Production", "ProductListPriceHistory", columns, (product, clock, None, price, clock))
        self.then(lambda: self.company.prices.__setitem__(product, price))

    # Human resources

    def hire(self) -> None:
        """Somebody new, with a department."""
        company, rng = self.company, self.rng
        today = company.clock.date()
        values = (
            f"{rng.randrange(10**8, 10**9)}",
            login(rng.choice(names.FIRST_NAMES), rng.choice(names.LAST_NAMES), rng.randrange(10**6, 10**9)),
            4,
            rng.choice(names.JOB_TITLES),
            today - timedelta(days=rng.randrange(7_000, 20_000)),
            rng.choice("MS"),
            today,
            False,
            0,
            20,
            True,
            guid(rng),
            company.clock,
        )
        employee = self.insert("HumanResources", "Employee", EMPLOYEE_COLUMNS[1:], values, "BusinessEntityID")
        columns = ("BusinessEntityID", "DepartmentID", "StartDate", "ModifiedDate")
        assignment = (employee, rng.choice(list(company.departments)), today, company.clock)
        self.insert(
            "HumanResources",
            "EmployeeDepartmentHistory",
            columns,
            assignment,
        )
        self.then(lambda: company.employees.append(employee))

    def leave(self) -> None:
        """Somebody goes, unless the house is too small already."""
        company = self.company
        if len(company.employees) <= 50:
            return
        place = self.rng.randrange(len(company.employees))
        self.run(
            'DELETE FROM "HumanResources"."Employee" WHERE "BusinessEntityID" = %s', company.employees[place]
        )
        self.then(lambda: del_from(company.employees, place, 1))

    def take_vacation(self) -> None:
        """Somebody takes hours off."""
        self.run(
            'UPDATE "HumanResources"."Employee" SET "VacationHours" = GREATEST("VacationHours" - %s, -40),'
            ' "ModifiedDate" = %s WHERE "BusinessEntityID" = %s',
            self.rng.randrange(4, 40), self.company.clock, self.rng.choice(self.company.employees),
        )  # fmt: skip

    def accrue_vacation(self) -> None:
        """A whole level of the organisation gets an hour: many rows, one statement."""
        self.run(
            'UPDATE "HumanResources"."Employee" SET "VacationHours" = LEAST("VacationHours" + 2, 240),'
            ' "ModifiedDate" = %s WHERE "OrganizationLevel" = %s',
            self.company.clock, self.rng.randrange(1, 5),
        )  # fmt: skip

    def reorganise(self) -> None:
        """A department gets another name: the key of AK_Department_Name changes."""
        company = self.company
        department = self.rng.choice(list(company.departments))
        base = company.departments[department].split(" · ")[0]
        name = f"{base} · {self.rng.randrange(1, 100)}"
        self.run(
            'UPDATE "HumanResources"."Department" SET "Name" = %s, "ModifiedDate" = %s'
            ' WHERE "DepartmentID" = %s',
            name, company.clock, department,
        )  # fmt: skip
        self.then(lambda: company.departments.__setitem__(department, name))

    def regroup(self) -> None:
        """A department goes to another group."""
        department = self.rng.choice(list(self.company.departments))
        self.run(
            'UPDATE "HumanResources"."Department" SET "GroupName" = %s, "ModifiedDate" = %s'
            ' WHERE "DepartmentID" = %s',
            self.rng.choice(names.GROUPS), self.company.clock, department,
        )  # fmt: skip

    # Building blocks

    def run(self, sql: str, *parameters: object) -> None:
        """Adds a statement."""
        self.statements.append(Statement(sql, parameters))

    def insert(
        self,
        schema: str,
        table: str,
        columns: tuple[str, ...],
        values: tuple[object, ...],
        key: str | None = None,
    ) -> Generated:
        """Adds an INSERT; ``key`` is the column whose generated value the result stands for."""
        self.generated += 1
        generated = Generated(self.generated)
        quoted = ", ".join(f'"{column}"' for column in columns)
        places = ", ".join(["%s"] * len(values))
        text = f'INSERT INTO "{schema}"."{table}" ({quoted}) VALUES ({places})'
        if key:
            self.statements.append(Statement(f'{text} RETURNING "{key}"', values, generated))
        else:
            self.statements.append(Statement(text, values))
        return generated

    def then(self, effect: Callable[[], None]) -> None:
        """Remembers what is true once the transaction has committed."""
        self.effects.append(effect)

    def some_order(self, keep: bool = False) -> Key | None:
        """An open order, closed afterwards unless ``keep``; None (which no row matches) without any."""
        orders = self.company.orders
        if not orders:
            return None
        place = self.rng.randrange(len(orders))
        if not keep:
            self.then(lambda: del_from(orders, place, 1))
        return orders[place]

    def some_product(self) -> tuple[int, list[int]]:
        """A product and its locations."""
        product = self.rng.choice(list(self.company.places))
        return product, self.company.places[product]


def del_from(items: list[T], start: int, count: int) -> None:
    """Takes ``count`` items away, none where it is negative."""
    del items[start : start + max(count, 0)]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of transaction: how often it comes, what it does mostly, to which schema's tables."""

    plan: Callable[[_Plan], None]
    weight: int
    verb: str
    schema: str


_KINDS = {
    "place_order": _Kind(_Plan.place_order, 34, "INSERT", "Sales"),
    "amend_order": _Kind(_Plan.amend_order, 5, "UPDATE", "Sales"),
    "ship_order": _Kind(_Plan.ship_order, 14, "UPDATE", "Sales"),
    "cancel_order": _Kind(_Plan.cancel_order, 4, "DELETE", "Sales"),
    "win_customer": _Kind(_Plan.win_customer, 3, "INSERT", "Sales"),
    "change_address": _Kind(_Plan.change_address, 4, "UPDATE", "Sales"),
    "move_stock": _Kind(_Plan.move_stock, 10, "UPDATE", "Production"),
    "receive_goods": _Kind(_Plan.receive_goods, 4, "UPDATE", "Production"),
    "relocate_stock": _Kind(_Plan.relocate_stock, 3, "UPDATE", "Production"),
    "change_price": _Kind(_Plan.change_price, 6, "UPDATE", "Production"),
    "hire": _Kind(_Plan.hire, 2, "INSERT", "HumanResources"),
    "leave": _Kind(_Plan.leave, 2, "DELETE", "HumanResources"),
    "take_vacation": _Kind(_Plan.take_vacation, 6, "UPDATE", "HumanResources"),
    "accrue_vacation": _Kind(_Plan.accrue_vacation, 1, "UPDATE", "HumanResources"),
    "reorganise": _Kind(_Plan.reorganise, 1, "UPDATE", "HumanResources"),
    "regroup": _Kind(_Plan.regroup, 1, "UPDATE", "HumanResources"),
}


def kind_weights(mix: Mix) -> dict[str, float]:
    """How often each kind of transaction comes in a mix; those that never do are not in it."""
    kinds = {name: kind for name, kind in _KINDS.items() if kind.schema in mix.of}
    if mix.parts is None:
        return {name: kind.weight for name, kind in kinds.items()}
    of_verb = Counter[str]()
    for kind in kinds.values():
        of_verb[kind.verb] += kind.weight
    weights = {name: mix.parts[kind.verb] * kind.weight / of_verb[kind.verb] for name, kind in kinds.items()}
    return {name: weight for name, weight in weights.items() if weight}
