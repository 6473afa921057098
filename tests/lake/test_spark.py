"""The session: Delta works, clients need the token, and nobody reads the token in the process list."""

from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from engine.lake.spark import ConnectEndpoint, connect_session


def test_a_connect_client_sees_the_same_tables(
    spark: SparkSession, connect_endpoint: ConnectEndpoint, lake_root: Path
) -> None:
    spark.range(3).write.format("delta").save(str(lake_root))
    client = connect_session(connect_endpoint)
    try:
        assert client.read.format("delta").load(str(lake_root)).where("id > 0").count() == 2
        assert client.conf.get("spark.sql.session.timeZone") == "UTC"
    finally:
        client.stop()


def test_the_token_is_in_no_command_line(spark: SparkSession, connect_endpoint: ConnectEndpoint) -> None:
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert any("--properties-file" in line for line in lines)
    assert not any(connect_endpoint.token in line for line in lines)
