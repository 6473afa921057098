"""Privileges as a real server has them, and the read rule over them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from engine.model.capture_instance import CaptureInstance
from engine.procedures.read_rule import may_read
from engine.sources.base import Privileges
from tests.sources.conftest import Source

_numbers = itertools.count(1)


@pytest.fixture
def new_role(source: Source) -> Iterator[Callable[..., str]]:
    """Makes roles of the server; they go after the test."""
    made: list[str] = []

    def make(options: str = "") -> str:
        made.append(f"reader {next(_numbers)}")
        source.sql(f'CREATE ROLE "{made[-1]}" {options}')
        return made[-1]

    yield make
    source.sql("RESET ROLE")
    for role in reversed(made):
        source.sql(f'REASSIGN OWNED BY "{role}" TO CURRENT_USER')
        source.sql(f'DROP OWNED BY "{role}"')
        source.sql(f'DROP ROLE "{role}"')


@pytest.fixture
def instance(source: Source) -> CaptureInstance:
    source.sql("CREATE TABLE t (id int PRIMARY KEY, a text, b text)")
    return source.instance("t", object_id=7)


def reads(source: Source, role: str, instance: CaptureInstance) -> bool:
    return may_read(instance, source.admin.privileges(role, [instance]))


def test_select_on_all_captured_columns_is_needed(
    source: Source, new_role: Callable[..., str], instance: CaptureInstance
) -> None:
    role = new_role()
    assert not reads(source, role, instance)
    source.sql(f'GRANT SELECT (id, a) ON t TO "{role}"')
    assert not reads(source, role, instance)
    assert reads(source, role, replace(instance, columns=instance.columns[:2]))
    source.sql(f'GRANT SELECT (b) ON t TO "{role}"')
    assert reads(source, role, instance)


def test_select_on_the_table_is_select_on_its_columns(
    source: Source, new_role: Callable[..., str], instance: CaptureInstance
) -> None:
    role, group = new_role(), new_role()
    source.sql(f'GRANT SELECT ON t TO "{group}"')
    assert not reads(source, role, instance)
    source.sql(f'GRANT "{group}" TO "{role}"')
    assert reads(source, role, instance)
    source.sql(f'REVOKE SELECT ON t FROM "{group}"')
    assert not reads(source, role, instance)


def test_a_column_that_was_dropped_asks_for_nothing(
    source: Source, new_role: Callable[..., str], instance: CaptureInstance
) -> None:
    role = new_role()
    source.sql(f'GRANT SELECT (id, a) ON t TO "{role}"')
    source.sql("ALTER TABLE t DROP COLUMN b")
    assert reads(source, role, instance)
    source.sql("DROP TABLE t")
    assert not reads(source, role, instance)


def test_a_gating_role_asks_for_membership_as_well(
    source: Source, new_role: Callable[..., str], instance: CaptureInstance
) -> None:
    role, gate, way = new_role(), new_role(), new_role()
    gated = replace(instance, role_name=gate)
    source.sql(f'GRANT SELECT ON t TO "{role}"')
    assert not reads(source, role, gated)
    source.sql(f'GRANT "{gate}" TO "{way}"')
    source.sql(f'GRANT "{way}" TO "{role}"')
    assert reads(source, role, gated)
    assert not reads(source, role, replace(instance, role_name="a role that was dropped"))
    source.sql(f'REVOKE SELECT ON t FROM "{role}"')
    assert not reads(source, role, gated)


def test_superusers_and_owners_of_the_database_are_exempt(
    source: Source, new_role: Callable[..., str], instance: CaptureInstance
) -> None:
    gated = replace(instance, role_name="a role that was dropped")
    assert reads(source, new_role("SUPERUSER"), gated)
    owner, member = new_role(), new_role()
    name = source.connection.info.dbname
    source.sql(f'ALTER DATABASE {name} OWNER TO "{owner}"')
    assert not reads(source, member, gated)
    source.sql(f'GRANT "{owner}" TO "{member}"')
    assert reads(source, owner, gated)
    assert reads(source, member, gated)


def test_a_role_that_is_not_there_may_nothing(source: Source, instance: CaptureInstance) -> None:
    assert source.admin.privileges("nobody", [instance]) == Privileges()


def test_many_instances_are_told_apart(source: Source, new_role: Callable[..., str]) -> None:
    role = new_role()
    for number in range(1, 4):
        source.sql(f"CREATE TABLE t{number} (id int PRIMARY KEY)")
    instances = [source.instance(f"t{number}", object_id=number) for number in range(1, 4)]
    source.sql(f'GRANT SELECT ON t1, t3 TO "{role}"')
    assert source.admin.privileges(role, instances) == Privileges(selectable=frozenset({1, 3}))
    assert source.admin.privileges(role, []) == Privileges()
