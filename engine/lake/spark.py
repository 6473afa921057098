"""The one Spark session of the agent, and clients of it over Spark Connect."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

SESSION_DEFAULTS: Mapping[str, str] = {
    "spark.app.name": "highwater",
    "spark.log.level": "WARN",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    # Change tables are many and small: 50 partitions a snapshot cost seconds (design/performance.md, 3).
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    # It would list all files of a small table in that file, and runs a job for each new table to do so.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    # The default store asks the shell about every local file, which is half of a commit. This one, too, looks
    # whether the entry exists and then renames; both leave it to us that one process writes a table.
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    # Queries are text, and a column may be called ${x}.
    "spark.sql.variable.substitute": "false",
    "spark.sql.debug.maxToStringFields": "200",
    # Threads that queries start, and that stay under a steady load: by default up to 1024 each.
    "spark.sql.resultQueryStage.maxThreadThreshold": "32",
    "spark.sql.shuffleExchange.maxThreadThreshold": "32",
}
"""Every session's settings; ``extra`` of `build_session` goes over them."""

_LOCAL_ONLY = frozenset({"spark.driver.bindAddress", "spark.driver.host", "spark.ui.enabled"})

_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""In the environment: pyspark's functions make columns for Connect sessions, as its own builder sets it."""


@dataclass(frozen=True, slots=True)
class ConnectEndpoint:
    """Where the agent serves its session: a port of the loopback interface, and the token to show.

    Port 0 to serve it where nobody else listens; `connect_port` tells it then.
    """

    port: int
    token: str = field(repr=False)


def build_session(
    master: str,
    driver_memory: str,
    jars: Sequence[Path],
    connect: ConnectEndpoint | None,
    extra: Mapping[str, str] | None = None,
) -> SparkSession:
    """The process's classic session, made on the first call, with Delta, and served over Connect if asked.

    jars: Delta's, put on the class path as they are (``spark.jars`` would copy them at every start).
    extra: settings that win over `SESSION_DEFAULTS`. The warehouse, which nothing uses, is kept out of
    the current folder. Anyone may read the JVM's command line, so every setting goes by a file of mode
    0600 that is gone once the JVM has read it.
    """
    settings = _settings(master, driver_memory, jars, connect) | dict(extra or {})
    if SparkContext._gateway is None:
        os.environ.pop(_CONNECT_MODE, None)
        if master.startswith("local"):
            # Python workers have this program's packages; a cluster's machines know where theirs are.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        with _launch_environment(settings):
            SparkContext._ensure_initialized(gateway=launch_gateway())  # type: ignore[no-untyped-call]
    return SparkSession.builder.getOrCreate()


def connect_port() -> int:
    """Where this process serves its session over Connect."""
    service = getattr(SparkContext._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    port: int = service.__getattr__("MODULE$").localPort()
    return port


def jvm_is_alive() -> bool:
    """Whether the JVM that this process started still runs; without it no session of ours works again."""
    gateway = SparkContext._gateway
    return gateway is not None and gateway.proc.poll() is None


def connect_session(endpoint: ConnectEndpoint) -> SparkSession:
    """A session of its own on the agent's Spark, for queries.

    The host must read ``localhost``: with an address in its place the client wants TLS and hangs.
    In a process that has the classic session too, name columns in text (``where("a > 1")``):
    `pyspark.sql.functions` makes columns for one kind of session only, and there it is the classic one.
    """
    if SparkContext._active_spark_context is None:
        os.environ[_CONNECT_MODE] = "1"
    # The client takes a second to import: the agent, which is none, starts without it.
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as ConnectSparkSession

    url = f"sc://localhost:{endpoint.port}/;token={endpoint.token}"
    session = ConnectSparkSession.builder.remote(url).create()
    # By default a client tries for ten minutes to reach an agent that is gone, or that refuses the token.
    session.client.set_retry_policies([DefaultPolicy(max_retries=4)])
    return cast(SparkSession, session)


def _settings(
    master: str, driver_memory: str, jars: Sequence[Path], connect: ConnectEndpoint | None
) -> dict[str, str]:
    local = _is_in_process(master)
    settings = {key: value for key, value in SESSION_DEFAULTS.items() if local or key not in _LOCAL_ONLY}
    paths = [str(jar.resolve()) for jar in jars]
    settings |= {
        "spark.master": master,
        "spark.driver.memory": driver_memory,
        "spark.driver.extraClassPath": os.pathsep.join(paths),
        "spark.sql.warehouse.dir": Path(tempfile.gettempdir(), "highwater-warehouse").as_uri(),
    }
    if not local:
        settings["spark.jars"] = ",".join(paths)
    if connect:
        settings |= {
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(connect.port),
            "spark.connect.authenticate.token": connect.token,
        }
    return settings


def _is_in_process(master: str) -> bool:
    """Whether tasks run in the driver's own JVM: with ``local-cluster[…]`` they do in JVMs beside it."""
    return master == "local" or master.startswith("local[")


@contextmanager
def _launch_environment(settings: Mapping[str, str]) -> Iterator[None]:
    """While it is open, a JVM that this process starts reads ``settings`` from a private file."""
    with tempfile.NamedTemporaryFile("w", prefix="spark-", suffix=".conf", encoding="utf-8") as file:
        file.writelines(f"{key}={_escaped(value)}\n" for key, value in settings.items())
        file.flush()
        wanted = {"PYSPARK_SUBMIT_ARGS": f"--properties-file '{file.name}' pyspark-shell"}
        if settings["spark.master"].startswith("local"):
            # A host that cannot resolve its own name would not get a session.
            wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
        before = {name: os.environ.get(name) for name in wanted}
        os.environ |= wanted
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _escaped(value: str) -> str:
    """A value as a Java properties file reads it back."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")
