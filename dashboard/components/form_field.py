"""Fields of a form that begin with what is configured, and anew when that has become something else."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import blake2s
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import streamlit as st

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Value = TypeVar("_Value")
_Values = TypeVar("_Values", bound="DataclassInstance")


def changed(typed: _Values, configured: _Values) -> dict[str, Any]:
    """The fields that were typed anew, by name.

    Nothing else is saved: somebody else may have changed the rest since the page was drawn.
    """
    before = asdict(configured)
    return {name: value for name, value in asdict(typed).items() if value != before[name]}


@dataclass(frozen=True, slots=True)
class FormField(Generic[_Value]):
    """One field: give a widget its ``key``, and ``begins`` as its default.

    of: what the form is about; a widget that stands for something else is another one. Were the value written
    into the session's state instead, a run that is cut short between that and the drawing of the field would
    leave the browser with the least that the field takes, and the next click would send it as if it had been
    typed: cleanup would keep a minute.
    """

    name: str
    begins: _Value
    of: object

    @property
    def key(self) -> str:
        """The widget's."""
        mark = blake2s(repr(self.of).encode(), digest_size=4).hexdigest()
        return f"{self.name}_{mark}"

    @property
    def typed(self) -> _Value:
        """What the field holds now; a click may come with a value that no run has drawn yet."""
        return cast("_Value", st.session_state.get(self.key, self.begins))
