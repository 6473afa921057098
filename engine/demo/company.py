"""The rows that the demo company begins with: made by rule, the same on every machine. Pure."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from engine.demo import names

OPENING = datetime(2026, 1, 5, 8, 0)
"""The company's own clock starts here; the workload goes on from the last order."""

EMPLOYEES = 240
CUSTOMERS = 300
PRODUCTS = 180
ORDERS = 500

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class TableRows:
    """The first rows of one table. ``identity`` is the column whose sequence goes on after them."""

    schema: str
    table: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    identity: str | None = None


def company() -> Iterator[TableRows]:
    """Every table with its rows, referenced tables first."""
    rng = random.Random(20260105)
    products = _products(rng)
    orders, details = _orders(rng, products)
    yield _departments()
    yield _employees(rng)
    yield _assignments()
    yield _locations()
    yield products
    yield _inventory(rng)
    yield _prices(products)
    yield _customers(rng)
    yield orders
    yield details


def guid(rng: random.Random) -> uuid.UUID:
    """A version 4 UUID from ``rng``."""
    return uuid.UUID(int=rng.getrandbits(128), version=4)


def cents(value: float) -> Decimal:
    """An amount with two decimals."""
    return Decimal(round(value * 100)) / 100


def login(first: str, last: str, number: int) -> str:
    """An employee's LoginID; the number keeps it unique."""
    return f"saltmarsh\\{first.lower()}.{last.lower()}{number}"


def _numbered(count: int, make: Callable[[int], Row]) -> tuple[Row, ...]:
    return tuple(make(number) for number in range(1, count + 1))


def _departments() -> TableRows:
    rows = [(number, name, group, OPENING) for number, (name, group) in enumerate(names.DEPARTMENTS, 1)]
    return TableRows(
        "HumanResources",
        "Department",
        ("DepartmentID", "Name", "GroupName", "ModifiedDate"),
        tuple(rows),
        "DepartmentID",
    )


def _hired(number: int) -> date:
    return date(2012, 1, 2) + timedelta(days=number * 21)


def _employees(rng: random.Random) -> TableRows:
    def employee(number: int) -> Row:
        first, last = rng.choice(names.FIRST_NAMES), rng.choice(names.LAST_NAMES)
        return (
            number,
            f"{rng.randrange(10**8, 10**9)}",
            login(first, last, number),
            None if number == 1 else min(4, 1 + number // 30),
            rng.choice(names.JOB_TITLES) if number > 1 else "Chief Executive Officer",
            date(1961, 1, 1) + timedelta(days=rng.randrange(15_000)),
            rng.choice("MS"),
            _hired(number),
            number % 3 == 0,
            rng.randrange(0, 100),
            rng.randrange(20, 80),
            True,
            guid(rng),
            OPENING,
        )

    return TableRows(
        "HumanResources", "Employee", EMPLOYEE_COLUMNS, _numbered(EMPLOYEES, employee), "BusinessEntityID"
    )


EMPLOYEE_COLUMNS = (
    "BusinessEntityID",
    "NationalIDNumber",
    "LoginID",
    "OrganizationLevel",
    "JobTitle",
    "BirthDate",
    "MaritalStatus",
    "HireDate",
    "SalariedFlag",
    "VacationHours",
    "SickLeaveHours",
    "CurrentFlag",
    "rowguid",
    "ModifiedDate",
)


def _assignments() -> TableRows:
    def assignment(number: int) -> Row:
        return (number, 1 + number % len(names.DEPARTMENTS), _hired(number), None, OPENING)

    return TableRows(
        "HumanResources",
        "EmployeeDepartmentHistory",
        ("BusinessEntityID", "DepartmentID", "StartDate", "EndDate", "ModifiedDate"),
        _numbered(EMPLOYEES, assignment),
    )


def _locations() -> TableRows:
    rows = [
        (number, name, Decimal(number * 7) / 4, Decimal(40 + number * 8), OPENING)
        for number, name in enumerate(names.LOCATIONS, 1)
    ]
    return TableRows(
        "Production",
        "Location",
        ("LocationID", "Name", "CostRate", "Availability", "ModifiedDate"),
        tuple(rows),
        "LocationID",
    )


def _products(rng: random.Random) -> TableRows:
    def product(number: int) -> Row:
        kind, series = rng.choice(names.PRODUCT_KINDS), rng.choice(names.PRODUCT_SERIES)
        cost = cents(rng.uniform(4, 900))
        return (
            number,
            f"{series} {kind} {number}",
            f"{kind[:2].upper()}-{1000 + number}",
            rng.choice((*names.COLORS, None)),
            rng.choice((50, 100, 500)),
            cost,
            cents(float(cost) * 1.6),
            rng.choice((*names.SIZES, None)),
            rng.choice((cents(rng.uniform(0.1, 40)), None)),
            datetime(2024, 5, 1) + timedelta(days=number),
            None,
            guid(rng),
            OPENING,
        )

    columns = (
        "ProductID",
        "Name",
        "ProductNumber",
        "Color",
        "SafetyStockLevel",
        "StandardCost",
        "ListPrice",
        "Size",
        "Weight",
        "SellStartDate",
        "SellEndDate",
        "rowguid",
        "ModifiedDate",
    )
    return TableRows("Production", "Product", columns, _numbered(PRODUCTS, product), "ProductID")


def _inventory(rng: random.Random) -> TableRows:
    locations = range(1, len(names.LOCATIONS) + 1)
    rows = tuple(
        (
            product,
            location,
            rng.choice("ABCDEFGH"),
            rng.randrange(1, 60),
            rng.randrange(200, 900),
            guid(rng),
            OPENING,
        )
        for product in range(1, PRODUCTS + 1)
        for location in sorted(rng.sample(locations, 3))
    )
    columns = ("ProductID", "LocationID", "Shelf", "Bin", "Quantity", "rowguid", "ModifiedDate")
    return TableRows("Production", "ProductInventory", columns, rows)


def _prices(products: TableRows) -> TableRows:
    price = products.columns.index("ListPrice")
    start = products.columns.index("SellStartDate")
    rows = tuple((row[0], row[start], None, row[price], OPENING) for row in products.rows)
    columns = ("ProductID", "StartDate", "EndDate", "ListPrice", "ModifiedDate")
    return TableRows("Production", "ProductListPriceHistory", columns, rows)


def _customers(rng: random.Random) -> TableRows:
    def customer(number: int) -> Row:
        trade, city = rng.choice(names.TRADES), rng.choice(names.CITIES)
        name = f"{rng.choice(names.LAST_NAMES)} {trade}"
        email = f"orders@{trade.split()[0].lower()}{number}.example" if number % 4 else None
        return (number, name, f"SM{number:08d}", city, email, OPENING)

    columns = ("CustomerID", "Name", "AccountNumber", "City", "EmailAddress", "ModifiedDate")
    return TableRows("Sales", "Customer", columns, _numbered(CUSTOMERS, customer), "CustomerID")


ORDER_COLUMNS = (
    "OrderDate",
    "DueDate",
    "ShipDate",
    "Status",
    "OnlineOrderFlag",
    "PurchaseOrderNumber",
    "CustomerID",
    "SalesPersonID",
    "SubTotal",
    "TaxAmt",
    "Freight",
    "Comment",
    "ModifiedDate",
)
DETAIL_COLUMNS = ("OrderQty", "ProductID", "UnitPrice", "UnitPriceDiscount", "rowguid", "ModifiedDate")


@dataclass(frozen=True, slots=True)
class OrderLine:
    """What one order takes of one product."""

    product: int
    quantity: int
    unit_price: Decimal
    discount: Decimal

    @property
    def total(self) -> Decimal:
        """The line's amount."""
        return self.unit_price * (1 - self.discount) * self.quantity


def order_row(
    rng: random.Random, lines: Sequence[OrderLine], ordered: datetime, customer: object, seller: object
) -> Row:
    """A new order's values, as ORDER_COLUMNS. Online orders have no seller and no purchase order."""
    subtotal = sum((line.total for line in lines), Decimal(0))
    purchase = None if seller is None else f"PO{rng.randrange(10**6):06d}"
    return (
        ordered,
        ordered + timedelta(days=12),
        None,
        1,
        seller is None,
        purchase,
        customer,
        seller,
        subtotal,
        round(subtotal * Decimal("0.08"), 4),
        round(subtotal * Decimal("0.025"), 4),
        rng.choice((*names.COMMENTS, None, None, None)),
        ordered,
    )


def detail_row(rng: random.Random, line: OrderLine, ordered: datetime) -> Row:
    """A line's values, as DETAIL_COLUMNS."""
    return (line.quantity, line.product, line.unit_price, line.discount, guid(rng), ordered)


def order_lines(
    rng: random.Random, products: Sequence[int], prices: Callable[[int], Decimal]
) -> list[OrderLine]:
    """One to eight lines of different products."""
    chosen = rng.sample(products, min(len(products), rng.choice((1, 1, 2, 2, 3, 4, 5, 8))))
    discounts = (Decimal(0), Decimal(0), Decimal("0.05"), Decimal("0.10"))
    return [
        OrderLine(product, rng.randrange(1, 12), prices(product), rng.choice(discounts)) for product in chosen
    ]


def _orders(rng: random.Random, products: TableRows) -> tuple[TableRows, TableRows]:
    price = products.columns.index("ListPrice")
    prices = {row[0]: row[price] for row in products.rows}
    headers: list[Row] = []
    details: list[Row] = []
    for number in range(1, ORDERS + 1):
        ordered = OPENING - timedelta(hours=ORDERS - number)
        lines = order_lines(rng, range(1, PRODUCTS + 1), lambda product: Decimal(str(prices[product])))
        seller = rng.randrange(1, EMPLOYEES + 1) if number % 3 == 0 else None
        headers.append((number, *order_row(rng, lines, ordered, rng.randrange(1, CUSTOMERS + 1), seller)))
        details += [
            (number, len(details) + place, *detail_row(rng, line, ordered))
            for place, line in enumerate(lines, 1)
        ]
    return (
        TableRows(
            "Sales", "SalesOrderHeader", ("SalesOrderID", *ORDER_COLUMNS), tuple(headers), "SalesOrderID"
        ),
        TableRows(
            "Sales",
            "SalesOrderDetail",
            ("SalesOrderID", "SalesOrderDetailID", *DETAIL_COLUMNS),
            tuple(details),
            "SalesOrderDetailID",
        ),
    )
