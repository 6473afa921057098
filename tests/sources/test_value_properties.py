"""Random values, decoded from both forms that the server gives, against the server's own text of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from psycopg import pq

from engine.runtime.embedded_postgres import EmbeddedPostgres
from engine.sources.postgres.columns import AS_BINARY, AS_TEXT, NULL, Decoding, Values, column_array
from engine.sources.postgres.connection import Connection, connect
from engine.sources.postgres.server_values import PostgresValues
from engine.sources.postgres.types import TypeCatalog

Inputs = Sequence[str | None]
Replaced = Counter[str]
"""How many values were replaced, by what was done."""

OUTSIDE = "infinity or a year outside 0001 to 9999 stored as the nearest the lake holds"
SEVERAL = "array of several dimensions stored as one list"
SHIFTED = "array that does not begin at 1 stored without its subscripts"


class Server:
    """The server's forms of values, and what the decoder makes of them."""

    def __init__(self, connection: Connection) -> None:
        self._pgconn = connection.pgconn
        self._values = PostgresValues(connection, "test")
        self._catalog = TypeCatalog(connection)

    def asked(self, expression: str, inputs: Inputs, form: pq.Format = pq.Format.TEXT) -> pq.PGresult:
        """``expression`` of each input, which is its ``{}``."""
        rows = ", ".join(f"({expression.format(f'${n}')})" for n in range(1, len(inputs) + 1))
        parameters = [None if value is None else value.encode() for value in inputs]
        query = f"SELECT v FROM (VALUES {rows}) AS t(v)".encode()
        result = self._pgconn.exec_params(query, parameters, result_format=form)
        assert result.status == pq.ExecStatus.TUPLES_OK, result.error_message
        return result

    def texts(self, expression: str, inputs: Inputs) -> list[str | None]:
        return [None if text is None else text.decode() for text in cells(self.asked(expression, inputs))]

    def decoded(self, type_: str, inputs: Inputs) -> tuple[list[Any], Replaced]:
        """The lake's values, the same from both forms."""
        (binary, replaced), from_text = (
            self._decoded(self.asked(f"{{}}::{type_}", inputs, form), kind)
            for form, kind in ((pq.Format.BINARY, AS_BINARY), (pq.Format.TEXT, AS_TEXT))
        )
        assert (list(map(repr, binary)), replaced) == (list(map(repr, from_text[0])), from_text[1])
        return binary, replaced

    def texts_as(self, type_: str, result: pq.PGresult) -> list[bytes]:
        """Texts of binary values that are said to be of another type; none may be unreadable."""
        (oid,) = cells(self.asked("{}::regtype::oid", [type_]))
        (column,) = self._catalog.column_types([(int(oid or b""), -1)])
        return self._values.texts(column, [cell for cell in cells(result) if cell is not None], pytest.fail)

    def _decoded(self, result: pq.PGresult, kind: int) -> tuple[list[Any], Replaced]:
        (column,) = self._catalog.column_types([(result.ftype(0), result.fmod(0))])
        replaced: Replaced = Counter()
        decoding = Decoding(self._values, lambda what, count: replaced.update({what: count}))
        array = column_array(column, placed(cells(result), kind), decoding)
        array.validate(full=True)
        assert array.type == column.arrow_type
        return array.to_pylist(), replaced


def cells(result: pq.PGresult) -> list[bytes | None]:
    return [result.get_value(row, 0) for row in range(result.ntuples)]


def placed(values: list[bytes | None], kind: int) -> Values:
    """As in a tuple of the log: something before, between and after the values."""
    parts = [b"between" + (value or b"") for value in values]
    lengths = np.array([len(value or b"") for value in values], np.int64)
    ends = np.cumsum([len(part) for part in parts])
    kinds = np.array([NULL if value is None else kind for value in values], np.uint8)
    return Values(np.frombuffer(b"".join([*parts, bytes(8)]), np.uint8), kinds, ends - lengths, lengths)


@pytest.fixture(scope="module")
def server(postgres: EmbeddedPostgres) -> Iterator[Server]:
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS properties WITH (FORCE)")
        connection.execute("CREATE DATABASE properties")
    with connect(postgres.dsn("properties"), "test", "test") as connection:
        connection.execute("CREATE TYPE public.pair AS (a int, b text)")
        connection.execute("CREATE TYPE public.pair_now AS (a int, b text, c int)")
        yield Server(connection)


def some(values: st.SearchStrategy[str]) -> st.SearchStrategy[list[str | None]]:
    return st.lists(st.none() | values, min_size=1, max_size=20)


ROUNDS = settings(max_examples=100, deadline=None)


# Numbers

shapes = st.tuples(st.integers(1, 45), st.integers(-12, 45))
unscaled = st.integers(-(10**45), 10**45) | st.integers(-(10**19), 10**19) | st.integers(-20000, 20000)


@ROUNDS
@given(shape=shapes, numbers=st.lists(st.none() | st.just("NaN") | unscaled, min_size=1, max_size=20))
@example(shape=(18, 18), numbers=[10**18 - 1, 1, -(10**18 - 1)])
@example(shape=(38, 0), numbers=[10**38 - 1, -(10**38 - 1), 10**37])
@example(shape=(38, 38), numbers=[10**38 - 1, 1])
def test_numeric_of_any_shape_keeps_every_digit(
    server: Server, shape: tuple[int, int], numbers: list[int | str | None]
) -> None:
    precision, scale = shape
    type_ = f"numeric({precision},{scale})"
    inputs = [scaled(n, precision, scale) if isinstance(n, int) else n for n in numbers]
    values, replaced = server.decoded(type_, inputs)
    expected = server.texts(f"{{}}::{type_}", inputs)
    if replaced:
        assert replaced == {f"NaN stored as the largest {lake_type(*shape)}": expected.count("NaN")}
        expected = [largest(*shape) if text == "NaN" else text for text in expected]
    assert list(map(stored, values)) == expected


def scaled(number: int, precision: int, scale: int) -> str:
    """A number of these digits that numeric(precision, scale) holds."""
    return f"{'-' if number < 0 else ''}{abs(number) % 10**precision}e{-scale}"


def lake_type(precision: int, scale: int) -> str:
    return f"decimal({max(precision, scale, precision - scale)},{max(scale, 0)})"


def largest(precision: int, scale: int) -> str:
    whole, fraction = max(precision - scale, 0), max(scale, 0)
    return f"{'9' * whole or '0'}.{'9' * fraction}".rstrip(".")


@ROUNDS
@given(inputs=some(st.decimals().map(str).filter(lambda text: "sNaN" not in text)))
def test_numeric_without_precision_is_the_servers_text(server: Server, inputs: Inputs) -> None:
    inputs = [text and text.replace("-NaN", "NaN") for text in inputs]
    inputs = [text if text is None or abs(exponent(text)) < 2000 else "1e2000" for text in inputs]
    assert server.decoded("numeric", inputs) == (server.texts("{}::numeric", inputs), {})


def exponent(text: str) -> int:
    number = Decimal(text)
    return number.adjusted() if number.is_finite() and number else 0


@ROUNDS
@given(inputs=some(st.floats().map(repr)), type_=st.sampled_from(["float8", "float8[]"]))
def test_doubles_keep_their_bits(server: Server, inputs: Inputs, type_: str) -> None:
    is_array = type_.endswith("[]")
    values, replaced = server.decoded(
        type_, [text and f"{{{text},NULL}}" for text in inputs] if is_array else inputs
    )
    numbers = [None if text is None else float(text) for text in inputs]
    expected = [None if number is None else [number, None] for number in numbers] if is_array else numbers
    # NaN equals itself, -0.0 differs from 0.0.
    assert (repr(values), replaced) == (repr(expected), {})


# Times: every microsecond and day that PostgreSQL knows, by its distance from 2000.

microseconds = st.integers(-211_813_488_000_000_000, 9_223_371_331_199_999_999)
lake_microseconds = st.integers(-63_082_281_600_000_000, 252_455_615_999_999_999)
days = st.integers(-2_451_545, 2_145_031_948)
lake_days = st.integers(-730_119, 2_921_939)
infinities = st.sampled_from(["infinity", "-infinity"])
bounds = st.sampled_from(
    [-63_082_281_600_000_001, -63_082_281_600_000_000, 252_455_615_999_999_999, 252_455_616_000_000_000]
)


@ROUNDS
@given(numbers=st.lists(st.none() | infinities | bounds | lake_microseconds | microseconds, min_size=1))
@pytest.mark.parametrize("type_", ["timestamp", "timestamptz"])
def test_time_stamps_are_exact_or_the_nearest(
    server: Server, type_: str, numbers: list[int | str | None]
) -> None:
    intervals = [f"{n} microseconds" if isinstance(n, int) else n for n in numbers]
    inputs = server.texts(f"'2000-01-01'::{type_} + {{}}::interval", intervals)
    zone = UTC if type_ == "timestamptz" else None
    least, most = datetime.min.replace(tzinfo=zone), datetime.max.replace(tzinfo=zone)
    assert server.decoded(type_, inputs) == nearest(inputs, least, most, datetime.fromisoformat)


@ROUNDS
@given(numbers=st.lists(st.none() | infinities | lake_days | days, min_size=1))
@example(numbers=[-730_120, -730_119, 2_921_939, 2_921_940, -2_451_545, 2_145_031_948])
def test_dates_are_exact_or_the_nearest(server: Server, numbers: list[int | str | None]) -> None:
    numbered = [str(n) if isinstance(n, int) else None for n in numbers]
    inputs: list[str | None] = server.texts("'2000-01-01'::date + {}::int", numbered)
    inputs = [n if isinstance(n, str) else text for n, text in zip(numbers, inputs, strict=True)]
    assert server.decoded("date", inputs) == nearest(inputs, date.min, date.max, date.fromisoformat)


def nearest(texts: Inputs, least: Any, most: Any, parsed: Any) -> tuple[list[Any], dict[str, int]]:
    """What the lake holds of these times in ISO 8601, and how many of them it does not."""
    low = [text is not None and (text.endswith("BC") or text == "-infinity") for text in texts]
    high = [
        text is not None and not below and (text == "infinity" or len(text.split("-")[0]) > 4)
        for text, below in zip(texts, low, strict=True)
    ]
    values = [
        None if text is None else least if below else most if above else parsed(text)
        for text, below, above in zip(texts, low, high, strict=True)
    ]
    outside = sum(low) + sum(high)
    return values, {OUTSIDE: outside} if outside else {}


# Arrays: each is (lower bounds, sizes, elements)

plain_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
elements = {
    "int4": st.integers(-(2**31), 2**31 - 1).map(str),
    "text": plain_text | st.sampled_from(["NULL", "null", "", "{}", '"', "\\", ",", " a "]),
    "numeric(30,5)": st.decimals(-(10**20), 10**20, places=5, allow_nan=False).map(lambda n: format(n, "f")),
    "box": st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda p: f"({p[0]},{p[1]}),(0,0)"),
    "inet": st.ip_addresses().map(str),
    "public.pair": st.tuples(st.none() | st.integers(0, 9), st.none() | st.sampled_from(["x", "y;"])).map(
        lambda p: f"({'' if p[0] is None else p[0]},{p[1] or ''})"
    ),
}


@st.composite
def arrays(draw: st.DrawFn, element: str) -> tuple[list[int], list[int], list[str | None]]:
    sizes = draw(
        st.lists(st.integers(1, 3), max_size=3) | st.lists(st.integers(1, 60), min_size=1, max_size=1)
    )
    lowers = [draw(st.integers(-2, 3) | st.just(1)) for _ in sizes]
    count = math.prod(sizes) if sizes else 0
    return lowers, sizes, [draw(st.none() | elements[element]) for _ in range(count)]


def literal(lowers: list[int], sizes: list[int], items: list[str | None], delimiter: str) -> str:
    """An array as PostgreSQL reads it."""
    texts = ["NULL" if item is None else quoted(item) for item in items]
    for size in reversed(sizes):
        texts = [
            "{" + delimiter.join(texts[start : start + size]) + "}" for start in range(0, len(texts), size)
        ]
    if not sizes:
        return "{}"
    return (
        "".join(f"[{low}:{low + size - 1}]" for low, size in zip(lowers, sizes, strict=True)) + "=" + texts[0]
    )


@ROUNDS
@given(data=st.data())
@pytest.mark.parametrize("element", elements)
def test_arrays_of_any_shape_keep_their_elements(server: Server, element: str, data: st.DataObject) -> None:
    given_ = data.draw(st.lists(st.none() | arrays(element), min_size=1, max_size=30))
    delimiter = ";" if element == "box" else ","
    values, replaced = server.decoded(
        f"{element}[]", [None if one is None else literal(*one, delimiter) for one in given_]
    )
    flat = [item for one in given_ if one for item in one[2]]
    texts = iter(server.texts(f"{{}}::{element}", flat) if flat else [])
    assert [value if value is None else [stored(item) for item in value] for value in values] == [
        None if one is None else [next(texts) for _ in one[2]] for one in given_
    ]
    assert replaced == Counter(
        {
            SEVERAL: sum(one is not None and len(one[1]) > 1 for one in given_),
            SHIFTED: sum(one is not None and any(low != 1 for low in one[0]) for one in given_),
        }
    )


def stored(item: Any) -> str | None:
    if item is None:
        return None
    return format(item, "f") if isinstance(item, Decimal) else str(item)


# Composites

spaces = st.text(st.sampled_from(' \t\n\v\f\r"\\(),'), max_size=4)


@ROUNDS
@given(fields=st.lists(st.tuples(st.none() | st.integers(0, 9), st.none() | plain_text | spaces), min_size=1))
def test_a_composite_of_earlier_fields_reads_as_it_did(
    server: Server, fields: list[tuple[int | None, str | None]]
) -> None:
    inputs = [
        f"({'' if number is None else number},{'' if text is None else quoted(text)})"
        for number, text in fields
    ]
    earlier = server.asked("{}::public.pair", inputs, pq.Format.BINARY)
    texts = [text.decode() for text in server.texts_as("public.pair_now", earlier)]
    assert texts == server.texts("{}::public.pair", inputs)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
