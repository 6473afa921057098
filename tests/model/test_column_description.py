import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.column_description import TypeFacts, type_facts


@pytest.mark.parametrize(
    ("column_type", "facts"),
    [
        ("smallint", TypeFacts("smallint", None, 5, 10, 0, None)),
        ("integer", TypeFacts("integer", None, 10, 10, 0, None)),
        ("bigint", TypeFacts("bigint", None, 19, 10, 0, None)),
        ("real", TypeFacts("real", None, 24, 2, None, None)),
        ("double precision", TypeFacts("double precision", None, 53, 2, None, None)),
        ("numeric(12,2)", TypeFacts("numeric", None, 12, 10, 2, None)),
        ("numeric(3,-2)", TypeFacts("numeric", None, 3, 10, -2, None)),
        ("numeric", TypeFacts("numeric", None, None, 10, None, None)),
        ("character varying(50)", TypeFacts("character varying", 50)),
        ("character varying", TypeFacts("character varying", -1)),
        ("character(7)", TypeFacts("character", 7)),
        ("text", TypeFacts("text", -1)),
        ("bytea", TypeFacts("bytea", -1)),
        ("bit(3)", TypeFacts("bit", 3)),
        ("bit varying(9)", TypeFacts("bit varying", 9)),
        ("date", TypeFacts("date", datetime_precision=0)),
        ("timestamp without time zone", TypeFacts("timestamp without time zone", datetime_precision=6)),
        ("timestamp(3) with time zone", TypeFacts("timestamp with time zone", datetime_precision=3)),
        ("time(0) without time zone", TypeFacts("time without time zone", datetime_precision=0)),
        ("interval", TypeFacts("interval", datetime_precision=6)),
        ("interval day to second(2)", TypeFacts("interval day to second", datetime_precision=2)),
        ("boolean", TypeFacts("boolean")),
        ("uuid", TypeFacts("uuid")),
        ("jsonb", TypeFacts("jsonb")),
        ("integer[]", TypeFacts("integer[]")),
        ("numeric(12,2)[]", TypeFacts("numeric(12,2)[]")),
        ('"char"', TypeFacts('"char"')),
        ('shop."size(1)"', TypeFacts('shop."size(1)"')),
    ],
)
def test_a_type_text_is_taken_apart(column_type, facts):
    assert type_facts(column_type) == facts


@given(st.text(min_size=1, max_size=30))
def test_any_text_has_an_answer(text):
    assert type_facts(text).data_type


@given(st.integers(1, 1000), st.integers(-1000, 1000))
def test_precision_and_scale_are_read_back(precision, scale):
    facts = type_facts(f"numeric({precision},{scale})")
    assert (facts.data_type, facts.numeric_precision, facts.numeric_scale) == ("numeric", precision, scale)
