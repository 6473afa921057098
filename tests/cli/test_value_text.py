"""Values as text, exactly."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.value_text import json_encoder, temporal_as_text, text_encoder

CASES = [
    ("int", 7, "7"),
    ("bigint", -(2**63), "-9223372036854775808"),
    ("decimal(12,2)", Decimal("-0.10"), "-0.10"),
    ("decimal(38,0)", Decimal(10**37), "1" + 37 * "0"),
    ("decimal(38,10)", Decimal("1E-10"), "0.0000000001"),
    ("float", float(np.float32(0.1)), "0.1"),
    ("double", 0.1, "0.1"),
    ("double", 1e300, "1e+300"),
    ("double", math.nan, '"NaN"'),
    ("float", math.inf, '"Infinity"'),
    ("double", -math.inf, '"-Infinity"'),
    ("double", -0.0, "-0.0"),
    ("boolean", True, "true"),
    ("string", 'Zoë says "hi"\n', '"Zoë says \\"hi\\"\\n"'),
    ("date", "2026-01-05", '"2026-01-05"'),
    ("timestamp_ntz", "2026-01-05 08:00:00", '"2026-01-05T08:00:00"'),
    ("timestamp", "2026-01-05 08:00:00.5", '"2026-01-05T08:00:00.500000+00:00"'),
    ("binary", b"\x00\xab", '"0x00AB"'),
    ("binary", bytearray(b""), '"0x"'),
    ("array<int>", [1, None], "[1, null]"),
    ("array<decimal(5,2)>", [Decimal("1.50")], "[1.50]"),
    ("array<binary>", [b"\xff"], '["0xFF"]'),
    ("array<timestamp>", ["2026-01-05 08:00:00"], '["2026-01-05T08:00:00+00:00"]'),
]


@pytest.mark.parametrize(("lake_type", "value", "text"), CASES)
def test_json_text(lake_type, value, text):
    assert json_encoder(lake_type)(value) == text


@pytest.mark.parametrize(("lake_type", "value", "text"), CASES)
def test_plain_text_is_json_without_the_quotes_of_strings(lake_type, value, text):
    expected = text if lake_type.startswith("array") or not text.startswith('"') else json.loads(text)
    assert text_encoder(lake_type)(value) == expected


def test_null_is_null():
    assert json_encoder("decimal(5,2)")(None) == "null"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_come_back(value):
    assert json.loads(json_encoder("double")(value)) == value


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_reals_come_back(value):
    assert np.float32(json.loads(json_encoder("float")(value))) == np.float32(value)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=8))
def test_decimals_come_back_with_their_scale(value):
    text = json_encoder("decimal(38,8)")(value)
    assert (
        json.loads(text, parse_float=Decimal, parse_int=Decimal).as_tuple() == value.as_tuple() or value == 0
    )


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_strings_come_back(value):
    assert json.loads(json_encoder("string")(value)) == value


@pytest.mark.parametrize(
    ("lake_type", "cast"),
    [
        ("timestamp", "string"),
        ("date", "string"),
        ("array<timestamp_ntz>", "array<string>"),
        ("array<int>", None),
        ("binary", None),
        ("decimal(5,2)", None),
    ],
)
def test_temporal_columns_are_fetched_as_text(lake_type, cast):
    assert temporal_as_text(lake_type) == cast
