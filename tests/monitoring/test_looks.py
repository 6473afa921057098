"""Looks at what does not answer."""

from __future__ import annotations

from threading import Event

import pytest

from engine.monitoring.looks import Look


def test_an_answer():
    look = Look(lambda: 7, "seven")
    assert look.answer(60) == 7
    assert look.is_over


def test_an_error_is_the_askers():
    with pytest.raises(ZeroDivisionError):
        Look(lambda: 1 // 0, "error").answer(60)


def test_nobody_waits_for_what_hangs():
    go = Event()
    look = Look(lambda: go.wait(60), "hangs")
    assert look.answer(0) is None
    assert not look.is_over
    go.set()
    assert look.answer(60) is True
