"""The session: Delta works, clients need the token, and nobody reads the token in the process list."""

import socket
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import grpc
import psutil
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.connect.proto.base_pb2 import AnalyzePlanRequest, UserContext
from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub

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


def test_a_wrong_token_is_refused_soon(spark: SparkSession, connect_endpoint: ConnectEndpoint) -> None:
    client = connect_session(ConnectEndpoint(connect_endpoint.port, "wrong"))
    with pytest.raises(PySparkException):
        client.range(1).count()


def test_whoever_shows_no_token_is_refused(spark: SparkSession, connect_endpoint: ConnectEndpoint) -> None:
    channel = grpc.insecure_channel(f"127.0.0.1:{connect_endpoint.port}")
    request = AnalyzePlanRequest(
        session_id=str(uuid4()), spark_version=AnalyzePlanRequest.SparkVersion(), user_context=UserContext()
    )
    with channel, pytest.raises(grpc.RpcError) as refused:
        SparkConnectServiceStub(channel).AnalyzePlan(request, timeout=60)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_it_is_served_to_this_machine_alone(spark: SparkSession, connect_endpoint: ConnectEndpoint) -> None:
    listening = {
        connection.laddr.ip
        for connection in psutil.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == connect_endpoint.port
    }
    assert listening <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    assert listening


def test_a_process_that_is_only_a_client_has_all_of_pyspark(
    spark: SparkSession, connect_endpoint: ConnectEndpoint
) -> None:
    program = f"""
from pyspark.sql import functions as F
from engine.lake.spark import ConnectEndpoint, connect_session
client = connect_session(ConnectEndpoint({connect_endpoint.port}, {connect_endpoint.token!r}))
assert client.createDataFrame([(1,)], "a int").where(F.col("a") == 1).count() == 1
client.stop()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def test_an_agent_that_is_gone_is_an_error_soon(closed_port: int) -> None:
    with pytest.raises(PySparkException):
        connect_session(ConnectEndpoint(closed_port, "token")).range(1).count()


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_token_is_in_no_command_line(spark: SparkSession, connect_endpoint: ConnectEndpoint) -> None:
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert any("--properties-file" in line for line in lines)
    assert not any(connect_endpoint.token in line for line in lines)
