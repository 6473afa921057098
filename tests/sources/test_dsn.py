"""DSNs by URI or key=value: the password apart, the rest a URI that means the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from engine.errors import SourceUnreachable
from engine.sources.registry import Sources

sources = Sources({}.get)
texts = st.text(
    st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs", "Cc"]), min_size=1
)


@pytest.mark.parametrize(
    ("dsn", "uri", "password"),
    [
        ("postgresql://u:p%40ss@db.example:5433/shop", "postgresql://u@db.example:5433/shop", "p@ss"),
        ("host=db.example dbname=shop user=u password='a b'", "postgresql://u@db.example/shop", "a b"),
        ("postgresql://postgres@/msdb?host=/run/pg", "postgresql://postgres@/msdb?host=%2Frun%2Fpg", None),
        (
            "postgresql://u@h/d?password=secret&sslmode=require",
            "postgresql://u@h/d?sslmode=require",
            "secret",
        ),
    ],
)
def test_the_password_is_split_off(dsn: str, uri: str, password: str | None) -> None:
    assert sources.split_dsn(dsn) == (uri, password)


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "user": texts,
            "password": texts,
            "dbname": texts,
            "host": st.sampled_from(["h", "/run/x y", "a,b", "::1", "10.0.0.1"]),
            "application_name": texts,
        },
    )
)
def test_nothing_but_the_password_changes(values: dict[str, str]) -> None:
    uri, password = sources.split_dsn(make_conninfo("", **values))
    assert password == values.pop("password", None)
    assert conninfo_to_dict(uri) == values


def test_an_unreadable_dsn_does_not_show_itself() -> None:
    with pytest.raises(SourceUnreachable) as caught:
        sources.split_dsn("host=x password")
    assert "password" not in str(caught.value)
