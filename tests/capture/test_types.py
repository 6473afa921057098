"""Every type at its extremes, from the source to the rows that Spark reads."""

from functools import partial

import pytest

from engine.lake.publisher import Publisher
from tests.sources.type_samples import COLUMNS, comparable, create_table, insert_samples, selected

INSERT, OLD, NEW, DELETE = 2, 3, 4, 1
LARGE = 50_000_000


@pytest.mark.parametrize("through_spark", [False, True])
def test_every_type_is_read_as_the_source_has_it(workbench, through_spark):
    create_table(workbench.connection)
    instance = workbench.enable("v")
    count = insert_samples(workbench.connection)
    first = selected(workbench.dsn)
    assignments = ", ".join(f"{name} = other.{name}" for name in COLUMNS.values())
    workbench.sql(f"UPDATE v SET {assignments} FROM v other WHERE other.id = (v.id + 1) % {count}")
    second = selected(workbench.dsn)
    workbench.sql("DELETE FROM v")
    publisher = Publisher(workbench.spark, fsync=False, through_spark=through_spark)
    workbench.drain(workbench.scan(publisher=publisher))
    types = {name: type_ for type_, name in COLUMNS.items()}
    for operation, expected_rows in ((INSERT, first), (OLD, first), (NEW, second), (DELETE, second)):
        rows = [row for row in workbench.rows(instance) if row["__$operation"] == operation]
        for expected, got in zip(expected_rows, sorted(rows, key=lambda row: row["id"]), strict=True):
            for name, value in expected.items():
                assert comparable(got[name]) == comparable(value), (operation, types.get(name), name)


def test_50_mb_of_bytea_reach_the_lake_whole(workbench):
    workbench.sql("CREATE TABLE files (id int PRIMARY KEY, n int, data bytea)")
    workbench.sql("ALTER TABLE files ALTER data SET STORAGE EXTERNAL")
    instance = workbench.enable("files")
    workbench.drain()
    drain = partial(workbench.drain, workbench.scan())
    workbench.sql(f"INSERT INTO files VALUES (1, 1, decode(repeat('ab', {LARGE}), 'hex'))")
    drain()
    workbench.sql("UPDATE files SET n = 2")
    drain()
    path = workbench.lake.change_table(instance.database, instance.capture_instance)
    rows = workbench.spark.read.format("delta").load(path).orderBy("`__$start_lsn`", "`__$operation`")
    found = rows.selectExpr("`__$operation`", "n", "length(data)", "md5(data)").collect()
    ((checksum,),) = workbench.sql("SELECT md5(data) FROM files")
    assert [tuple(row) for row in found] == [
        (INSERT, 1, LARGE, checksum),
        (OLD, 1, LARGE, checksum),
        (NEW, 2, LARGE, checksum),
    ]
