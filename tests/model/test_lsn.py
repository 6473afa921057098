import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.lsn import Lsn

lsns = st.binary(min_size=10, max_size=10).map(Lsn)
positions = st.integers(0, 2**64 - 1)
counters = st.integers(0, 2**16 - 1)


def test_text_is_0x_and_twenty_upper_case_digits():
    assert str(Lsn.at(0x1AF5620, 3)) == "0x0000000001AF56200003"


@given(lsns)
def test_both_text_forms_read_back(lsn):
    assert Lsn.parse(str(lsn)) == lsn
    assert Lsn.parse(lsn.groups) == lsn


@given(lsns, lsns)
def test_text_sorts_like_the_bytes(a, b):
    assert (a < b) == (str(a) < str(b)) == (a.raw < b.raw)


@given(positions, counters)
def test_position_and_counter_are_kept(position, counter):
    lsn = Lsn.at(position, counter)
    assert (lsn.position, lsn.counter) == (position, counter)


@given(lsns.filter(lambda lsn: lsn != Lsn.MAX))
def test_nothing_lies_between_an_lsn_and_the_next(lsn):
    assert lsn < lsn.next()
    assert lsn.next().previous() == lsn


@given(positions.filter(bool), positions)
def test_the_lsn_before_a_log_end_is_above_every_commit_that_ended_and_below_one_at_the_end(end, commit):
    before_end = Lsn.at(end).previous()
    assert (Lsn.at(commit) <= before_end) == (commit < end)


def test_the_ends_have_no_neighbour():
    with pytest.raises(OverflowError):
        Lsn.MAX.next()
    with pytest.raises(OverflowError):
        Lsn.ZERO.previous()


@pytest.mark.parametrize("text", ["", "0x", "0x00", "zz", "1:2", "0x" + "0" * 21, "1:2:12345", "-1:0:0"])
def test_anything_else_is_no_lsn(text):
    with pytest.raises(ValueError, match="is not an LSN"):
        Lsn.parse(text)


def test_short_groups_are_padded_as_the_original_prints_them():
    assert Lsn.parse("19:1c0:3").groups == "00000019:000001c0:0003"


def test_an_lsn_has_ten_bytes():
    with pytest.raises(ValueError, match="10 bytes"):
        Lsn(b"123")
