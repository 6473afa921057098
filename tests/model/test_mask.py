import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.mask import full_mask, is_bit_set, mask_of, mask_width, ordinals_of

widths = st.integers(1, 1024)


@st.composite
def column_sets(draw):
    columns = draw(widths)
    return columns, draw(st.sets(st.integers(1, columns)))


@given(column_sets())
def test_exactly_the_given_ordinals_are_set(case):
    columns, ordinals = case
    mask = mask_of(ordinals, columns)
    assert set(ordinals_of(mask)) == ordinals
    assert {n for n in range(1, columns + 1) if is_bit_set(n, mask)} == ordinals


@given(widths)
def test_the_full_mask_sets_every_defined_bit_and_no_other(columns):
    assert ordinals_of(full_mask(columns)) == tuple(range(1, columns + 1))
    assert len(full_mask(columns)) == mask_width(columns) <= 128


def test_ordinal_1_is_the_lowest_bit_of_the_last_byte():
    assert mask_of([1], 10) == b"\x00\x01"
    assert mask_of([9], 10) == b"\x01\x00"
    assert full_mask(10) == b"\x03\xff"


def test_null_and_positions_outside_have_no_bit():
    assert not is_bit_set(1, None)
    assert not is_bit_set(0, b"\xff")
    assert not is_bit_set(9, b"\xff")
    assert ordinals_of(None) == ()


@pytest.mark.parametrize("ordinal", [0, 11, -1])
def test_an_ordinal_that_is_no_captured_column_is_refused(ordinal):
    with pytest.raises(ValueError, match="not within"):
        mask_of([ordinal], 10)
