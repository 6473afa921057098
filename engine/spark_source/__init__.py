"""``spark.read.format("highwater")`` and ``readStream``: changes for any Spark session, not only the agent's.

Register it once a session: ``spark.dataSource.register(HighwaterDataSource)``. Options: `SourceOptions`.
"""

from engine.spark_source.options import OptionInvalid, SourceOptions
from engine.spark_source.source import HighwaterDataSource

__all__ = ["HighwaterDataSource", "OptionInvalid", "SourceOptions"]
