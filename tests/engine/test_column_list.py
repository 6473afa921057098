"""The grammar of @captured_column_list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ColumnListUnmappable, QuotedNameNotTerminated
from engine.procedures.column_list import parse_column_list


def parse(text: str) -> tuple[str, ...]:
    return parse_column_list(text, "hr", "department")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("id", ("id",)),
        ("id,name", ("id", "name")),
        (" id , name ", ("id", "name")),
        ('"a,b",[c,d]', ("a,b", "c,d")),
        ('"a""b",[c]]d]', ('a"b', "c]d")),
        ("[ spaced ]", (" spaced ",)),
        ('first"quote', ('first"quote',)),
        ("Name, name", ("Name", "name")),
        ('[" inside "]', ('" inside "',)),
    ],
)
def test_names(text, names):
    assert parse(text) == names


@pytest.mark.parametrize("text", ['"id', "[id", 'id, "name', "[id]]", '"id""'])
def test_a_quoted_name_must_be_terminated(text):
    with pytest.raises(QuotedNameNotTerminated):
        parse(text)


@pytest.mark.parametrize(
    "text", ["", " ", ",", "id,", ",id", "id,,name", "[]", '""', '"a" b', "id, id", "id,[id]"]
)
def test_what_cannot_be_mapped(text):
    with pytest.raises(ColumnListUnmappable):
        parse(text)


names = st.lists(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20),
    min_size=1,
    max_size=6,
    unique=True,
)


@given(names, st.sampled_from(["", " ", "  "]), st.randoms())
def test_whatever_is_quoted_comes_back(wanted, blank, random):
    def quoted(name: str) -> str:
        if random.random() < 0.5:
            return f"[{name.replace(']', ']]')}]"
        return '"' + name.replace('"', '""') + '"'

    text = f"{blank},{blank}".join(quoted(name) for name in wanted)
    assert parse(f"{blank}{text}{blank}") == tuple(wanted)


@given(st.text(max_size=40))
def test_any_text_is_names_or_an_error_of_ours(text):
    try:
        result = parse(text)
    except (ColumnListUnmappable, QuotedNameNotTerminated):
        return
    assert result
    assert all(result)
    assert len(set(result)) == len(result)
