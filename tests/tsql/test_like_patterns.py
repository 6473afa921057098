"""Sets in LIKE's patterns as the targets' regular expressions."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from engine.tsql.like_patterns import regular_expression
from engine.tsql.operators import like
from engine.tsql.types import TEXT, Value

WORDS = st.text(st.sampled_from("ab_%[]^-\\.$(é"), max_size=6)
PATTERNS = st.lists(
    st.sampled_from(["a", "b", "%", "_", "[_]", "[[]", "[^a]", "[a-b]", "[%.$]", "\\", ".", "(", "$", "é"])
).map("".join)


@given(WORDS, PATTERNS)
def test_a_set_matches_as_in_expressions(text: str, pattern: str) -> None:
    matched = re.fullmatch(regular_expression(pattern), text, re.DOTALL) is not None
    assert matched == like(Value(TEXT, text), Value(TEXT, pattern))


def test_an_escaped_character_is_itself() -> None:
    assert regular_expression("a!_[b]!%", "!") == "^a\\_[b]\\%$"
