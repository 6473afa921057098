"""What CONCURRENTLY commits on its way is refused before it begins, however its names are written."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from engine.model.capture_instance import IndexColumn
from tests.sources.conftest import Source

REFUSED = psycopg.errors.ObjectNotInPrerequisiteState

DROPS = [
    "DROP INDEX CONCURRENTLY k_pkey2",
    'DROP INDEX CONCURRENTLY U&"k_pkey2"',
    'DROP INDEX CONCURRENTLY U&"k_\\0070key2"',
    """DROP INDEX CONCURRENTLY IF EXISTS public.u&"k_!0070key2" UESCAPE '!'""",
    """DROP INDEX CONCURRENTLY U&"k_!0070key2" UESCAPE $$!$$ RESTRICT""",
    "DROP INDEX /* one /* in */ another */ CONCURRENTLY k_pkey2",
    'DROP INDEX CONCURRENTLY /* " */ k_pkey2',
]
DETACHES = [
    "ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY",
    'ALTER TABLE U&"\\0070" DETACH PARTITION p1 CONCURRENTLY',
    """ALTER TABLE U&"!0070" UESCAPE '!' DETACH PARTITION p1 CONCURRENTLY""",
    'ALTER TABLE p DETACH PARTITION U&"p1"CONCURRENTLY',
    "ALTER /* /* */ */ TABLE p DETACH PARTITION p1 CONCURRENTLY",
]


@pytest.fixture
def guarded(source: Source) -> Source:
    """Table ``k`` identified by an index of its own, ``p`` with a partition that must stay."""
    source.sql("CREATE TABLE k (id int NOT NULL); CREATE UNIQUE INDEX k_pkey2 ON k (id)")
    source.sql("CREATE TABLE p (id int PRIMARY KEY) PARTITION BY LIST (id)")
    source.sql("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)")
    source.admin.enable_table(
        replace(source.instance("k"), index_name="k_pkey2", index_columns=(IndexColumn("id", 1, 1),))
    )
    source.admin.enable_table(replace(source.instance("p", 2), partition_switch=False))
    return source


def test_an_index_that_identifies_rows_stays_whole(guarded: Source) -> None:
    for statement in DROPS:
        with pytest.raises(REFUSED):
            guarded.sql(statement)
        assert guarded.sql("SELECT indisvalid FROM pg_index WHERE indexrelid = 'k_pkey2'::regclass") == [
            (True,)
        ], statement


def test_a_partition_that_must_stay_is_not_half_detached(guarded: Source) -> None:
    for statement in DETACHES:
        with pytest.raises(REFUSED):
            guarded.sql(statement)
        assert guarded.sql("SELECT inhdetachpending FROM pg_inherits WHERE inhparent = 'p'::regclass") == [
            (False,)
        ], statement


def test_where_nothing_is_at_stake_any_name_goes(source: Source) -> None:
    source.sql("CREATE TABLE k (id int NOT NULL); CREATE UNIQUE INDEX k_id ON k (id)")
    source.track("k")
    source.sql('DROP INDEX CONCURRENTLY U&"k_id"')
    source.sql('DO $$ BEGIN /* not /* concurrently */ */ ALTER TABLE k ADD U&"more" int; END $$')
