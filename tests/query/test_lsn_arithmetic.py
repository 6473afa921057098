import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.engine import Engine
from engine.errors import LsnOverflow
from engine.model.lsn import Lsn

lsns = st.binary(min_size=10, max_size=10).map(Lsn)


@given(lsns.filter(lambda lsn: lsn != Lsn.MAX), lsns)
def test_nothing_lies_between_an_lsn_and_the_next(lsn, other):
    following = Engine.increment_lsn(lsn)
    assert lsn < following
    assert not lsn < other < following
    assert Engine.decrement_lsn(following) == lsn


def test_null_has_no_neighbours():
    assert Engine.increment_lsn(None) is None
    assert Engine.decrement_lsn(None) is None


def test_beyond_the_ends_is_arithmetic_overflow():
    with pytest.raises(LsnOverflow, match=r"0xFFFFFFFFFFFFFFFFFFFF has no next LSN") as overflow:
        Engine.increment_lsn(Lsn.MAX)
    assert overflow.value.number == 8115
    with pytest.raises(LsnOverflow, match="no previous LSN"):
        Engine.decrement_lsn(Lsn.ZERO)
