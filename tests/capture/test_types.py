"""Every type at its extremes, from the source to the rows that Spark reads."""

from datetime import UTC, datetime
from functools import partial

import pytest
from structlog.testing import capture_logs

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
    rows = workbench.spark.read.format("delta").load(path)
    columns = ("`__$operation`", "`__$update_mask`", "n", "length(data)", "md5(data)")
    found = sorted(rows.selectExpr(*columns).collect(), key=lambda row: (row.n, row[0]))
    ((checksum,),) = workbench.sql("SELECT md5(data) FROM files")
    assert [tuple(row) for row in found] == [
        (INSERT, b"\x07", 1, LARGE, checksum),
        (OLD, b"\x02", 1, LARGE, checksum),
        (NEW, b"\x02", 2, LARGE, checksum),
    ]


def test_an_update_between_values_that_the_lake_cannot_tell_apart_gives_no_rows(workbench):
    workbench.sql("CREATE TABLE t (id int PRIMARY KEY, until timestamptz, n int)")
    instance = workbench.enable("t")
    workbench.sql("INSERT INTO t VALUES (1, 'infinity', 1)")
    workbench.sql("UPDATE t SET until = '20000-01-01 00:00:00+00'")
    workbench.sql("UPDATE t SET until = 'infinity', n = 2")
    workbench.sql("UPDATE t SET until = '-infinity'")
    with capture_logs() as logs:
        workbench.drain()
    rows = [
        (row["__$operation"], row["__$update_mask"], row["until"], row["n"])
        for row in workbench.rows(instance)
    ]
    last, first = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
    assert rows == [
        (INSERT, b"\x07", last, 1),
        (OLD, b"\x04", last, 1),
        (NEW, b"\x04", last, 2),
        (OLD, b"\x02", last, 2),
        (NEW, b"\x02", first, 2),
    ]
    said = [line for line in logs if "nearest the lake holds" in line["event"]]
    assert [(line["table"], line["column"]) for line in said] == [("public.t", "until")] * len(said)
    assert sum(line["values"] for line in said) == 7
