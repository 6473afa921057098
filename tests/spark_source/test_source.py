"""``format("highwater")`` over a real source, read in batches and followed by a stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from engine.spark_source import HighwaterDataSource
from tests.capture.conftest import DATABASE, Workbench

INSTANCE = "public_t"
ORDER = ["__$start_lsn", "__$command_id", "__$seqval", "__$operation"]
DDL = """CREATE TABLE t (id int PRIMARY KEY, name text, "b c" numeric(10,2), at timestamptz, tags text[],
 raw bytea)"""


@pytest.fixture
def captured(workbench: Workbench) -> Workbench:
    """Three transactions on a table with a name that Delta has to map, in two files."""
    workbench.sql(DDL)
    workbench.enable("t")
    workbench.drain()
    workbench.sql(r"INSERT INTO t VALUES (1, 'a', 1.50, '2026-01-05 08:00Z', '{x,NULL}', '\x00ff')")
    workbench.sql("INSERT INTO t VALUES (2, 'b'), (3, 'c')")
    workbench.drain()
    workbench.sql("UPDATE t SET name = 'B' WHERE id = 2; DELETE FROM t WHERE id = 3")
    workbench.drain()
    return workbench


@pytest.fixture
def source(captured: Workbench, tmp_path: Path) -> Callable[..., DataFrame]:
    """Reads with these options, from a home that knows the workbench's control database and lake."""
    captured.spark.dataSource.register(HighwaterDataSource)
    home = tmp_path / "reader"
    home.mkdir()
    settings = {"control_dsn": captured.control._connections._dsn, "lake_root": captured.lake.root}
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
    (home / "highwater.toml").write_text("".join(lines))
    common = {"database": DATABASE, "capture_instance": INSTANCE, "home": str(home)}

    def read(stream: bool = False, **options: str) -> DataFrame:
        reader = captured.spark.readStream if stream else captured.spark.read
        return reader.format("highwater").options(**(common | options)).load()

    return read


def in_order(frame: DataFrame) -> pa.Table:
    return frame.orderBy(*(f"`{name}`" for name in ORDER)).toArrow()


def answer(bench: Workbench, option: str = "all", net: bool = False) -> pa.Table:
    """What the query function says of the whole validity interval."""
    low, high = bench.engine.get_min_lsn(DATABASE, INSTANCE), bench.engine.get_max_lsn(DATABASE)
    query = bench.engine.get_net_changes if net else bench.engine.get_all_changes
    return query(DATABASE, INSTANCE, low, high, option).toArrow()


def test_answers_are_those_of_the_query_functions(captured, source):
    for option in ("all", "all update old"):
        found = in_order(source(row_filter=option))
        assert found.column_names[-1] == "__$command_id"
        assert found.drop(["__$command_id"]).to_pylist() == answer(captured, option).to_pylist()
    for option in ("all", "all with mask", "all with merge"):
        found = source(mode="net", row_filter=option).orderBy("id").toArrow()
        expected = answer(captured, option, net=True)
        assert found.to_pylist() == sorted(expected.to_pylist(), key=lambda row: row["id"])
        assert found.schema.names == expected.schema.names


def test_a_range_of_lsns_is_closed_and_one_of_times_open_at_its_start(captured, source):
    *_, second, third = captured.mapping()
    only = source(**{"from": second["start_lsn"], "to": second["start_lsn"]})
    assert {row["__$start_lsn"] for row in only.toArrow().to_pylist()} == {second["start_lsn"]}
    times = {"from": second["tran_end_time"].isoformat(), "to": third["tran_end_time"].isoformat()}
    assert {row["__$start_lsn"] for row in source(**times).toArrow().to_pylist()} == {third["start_lsn"]}


REFUSED = [
    ({"from": "0x00000000000000000001"}, "An insufficient number of arguments"),
    ({"to": "0xFF000000000000000000"}, "An insufficient number of arguments"),
    ({"from": (datetime.now(UTC) - timedelta(days=9)).isoformat()}, "An insufficient number"),
    ({"row_filter": "some"}, "An insufficient number"),
    ({"capture_instance": "nope"}, "Invalid object name 'cdc.fn_cdc_get_all_changes_nope'"),
    ({"database": "nowhere"}, "Database 'nowhere' does not exist"),
    ({"mode": "both"}, "'both' is neither all nor net"),
    ({"principal": "nobody_here"}, "permission was denied"),
]


def test_what_cannot_be_asked_is_said_in_the_originals_words(captured, source):
    captured.sql("DO $$ BEGIN CREATE ROLE nobody_here; EXCEPTION WHEN duplicate_object THEN END $$")
    for options, words in REFUSED:
        with pytest.raises(PySparkException, match=words):
            source(**options).toArrow()


def test_a_stream_goes_on_where_it_was_stopped_and_never_passes_the_high_watermark(
    captured, source, tmp_path
):
    target, checkpoint = str(tmp_path / "copy"), str(tmp_path / "checkpoint")

    def follow() -> list[dict[str, object]]:
        rows = source(stream=True).withColumnRenamed("b c", "b_c")
        query = rows.writeStream.format("delta").option("checkpointLocation", checkpoint).start(target)
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        copy = captured.spark.read.format("delta").load(target).withColumnRenamed("b_c", "b c")
        return in_order(copy).drop(["__$command_id"]).to_pylist()

    assert follow() == answer(captured).to_pylist()
    captured.sql("INSERT INTO t VALUES (4, 'd')")
    assert follow() == answer(captured).to_pylist(), "nothing is published yet"
    captured.drain()
    captured.sql("UPDATE t SET name = 'D' WHERE id = 4")
    captured.drain()
    found = follow()
    assert found == answer(captured).to_pylist()
    assert len(found) == 7
