"""The objects of the Spark session's own JVM that commits need, over py4j.

Most are Delta's internal ones: this module and `engine.lake.delta_log` are all that know them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession


class Jvm:
    """The handful of JVM objects that commits need, looked up once: each look-up is a round trip."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        delta = jvm.org.apache.spark.sql.delta
        self.session = spark._jsparkSession
        # The method itself: to look it up at each call takes two round trips more.
        self._set_active_session = jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession
        self.hadoop_configuration = self.session.sessionState().newHadoopConf()
        self.none = getattr(jvm.scala, "None$").__getattr__("MODULE$")
        self._option = getattr(jvm.scala, "Option$").__getattr__("MODULE$")
        self.single = getattr(jvm.scala.collection, "Iterator$").__getattr__("MODULE$").single
        self.delta_log_object = getattr(delta, "DeltaLog$").__getattr__("MODULE$")
        self.last_checkpoint_object = getattr(delta, "LastCheckpointInfo$").__getattr__("MODULE$")
        self._action_object = getattr(delta.actions, "Action$").__getattr__("MODULE$")
        self._python_utils = jvm.PythonUtils
        self._path = jvm.org.apache.hadoop.fs.Path
        self._converters = jvm.scala.jdk.javaapi.CollectionConverters
        append = jvm.org.apache.spark.sql.SaveMode.Append
        # A checksum file beside each log entry costs a run of chmod and a flush more than it is worth.
        jvm.org.apache.hadoop.fs.FileSystem.getLocal(self.hadoop_configuration).setWriteChecksum(False)
        self.create_table = delta.DeltaOperations.CreateTable
        self.write = delta.DeltaOperations.Write(append, *[self.none] * 8)

    def enter(self) -> None:
        """Makes the session this thread's: once a table has a checkpoint, Delta asks the thread for it."""
        self._set_active_session(self.session)

    def some(self, value: Any) -> Any:
        """A Scala Some."""
        return self._option.apply(value)

    def path(self, text: str) -> Any:
        """A Hadoop path."""
        return self._path(text)

    def path_in(self, folder: Any, name: str) -> Any:
        """The Hadoop path of a file in a folder."""
        return self._path(folder, name)

    def action(self, text: str) -> Any:
        """An action of Delta's log from its JSON."""
        return self._action_object.fromJson(text)

    def as_seq(self, values: list[Any]) -> Any:
        """A Scala Seq."""
        return self._python_utils.toSeq(values)

    def as_list(self, values: Any) -> Sequence[Any]:
        """The elements of a Scala Seq."""
        return list(self._converters.asJava(values))
