"""The Python data source: planned by an engine of its own, read from the lake's files by Spark's workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from engine.engine import Engine
from engine.model.lsn import Lsn
from engine.settings import Settings
from engine.spark_source.options import OptionInvalid, SourceOptions

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from engine.query.change_files import ChangePart

_LSN = "lsn"
"""Key of a stream's offset: the last commit LSN that was read, as text."""


@dataclass
class Share(InputPartition):
    """A part of an answer, for one task."""

    part: ChangePart

    def __init__(self, part: ChangePart) -> None:
        self.part = part
        super().__init__(None)


class HighwaterDataSource(DataSource):
    """``format("highwater")``: the rows of a capture instance as far as they are published.

    Columns: `engine.query.change_files.ChangeFiles.schema`. Options: `SourceOptions`. Errors are those of
    the query functions (RangeOutsideValidity, InvalidObjectName, SelectDenied, UnknownDatabase), in the
    words of Spark's exception.
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "highwater"

    def schema(self) -> StructType:
        """The columns that the instance has now."""
        asked = SourceOptions.of(self.options)
        with _engine(asked) as engine:
            found = engine.change_schema(
                asked.database, asked.capture_instance, net=asked.net, principal=asked.principal
            )
        return from_arrow_schema(found)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch reader."""
        return BatchReader(SourceOptions.of(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A stream reader."""
        return StreamReader(SourceOptions.of(self.options), schema)


class _Reading:
    """What both readers do in Spark's workers."""

    def __init__(self, asked: SourceOptions, schema: StructType) -> None:
        self._asked = asked
        self._schema = schema

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """The rows of one share."""
        assert isinstance(partition, Share)
        wanted = to_arrow_schema(self._schema, timezone="UTC")
        for batch in partition.part.rows():
            yield batch.cast(wanted)

    def _shares(self, engine: Engine, low: Lsn | None, high: Lsn | None) -> Sequence[Share]:
        asked = self._asked
        files = engine.change_files(
            asked.database,
            asked.capture_instance,
            low,
            high,
            asked.row_filter,
            net=asked.net,
            principal=asked.principal,
        )
        return [Share(part) for part in files.parts()]


class BatchReader(_Reading, DataSourceReader):
    """Reads a closed range of commits once."""

    def partitions(self) -> Sequence[InputPartition]:
        """A share for each task."""
        asked = self._asked
        with _engine(asked) as engine:
            return self._shares(engine, _from(engine, asked), _to(engine, asked))


class StreamReader(_Reading, DataSourceStreamReader):
    """Follows the high watermark. Offsets are commit LSNs: a batch holds whole transactions.

    A stream that was away for so long that cleanup has passed it ends with error 313: what it has missed
    is gone.
    """

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Before the first commit asked for: ``from``, else the low watermark."""
        if self._asked.to is not None:
            raise OptionInvalid("to", "a stream has no end.")
        with _engine(self._asked) as engine:
            first = _from(engine, self._asked)
        return {_LSN: str(Lsn.ZERO if first in (None, Lsn.ZERO) else first.previous())}

    def latestOffset(self, start: dict[str, Any], limit: object) -> dict[str, Any]:  # noqa: N802
        """The published high watermark; ``start`` while nothing is published above it."""
        with _engine(self._asked) as engine:
            high = engine.get_max_lsn(self._asked.database)
        reached = Lsn.parse(start[_LSN])
        return {_LSN: str(reached if high is None else max(high, reached))}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Commits after ``start`` up to ``end``, in shares."""
        after, upto = Lsn.parse(start[_LSN]), Lsn.parse(end[_LSN])
        if after >= upto:
            return []
        with _engine(self._asked) as engine:
            low = engine.get_min_lsn(
                self._asked.database, self._asked.capture_instance, self._asked.principal
            )
            if upto < low:
                return []  # the instance begins later
            begun = Lsn.ZERO if after == Lsn.ZERO else after.next()
            return self._shares(engine, low if begun == Lsn.ZERO else begun, upto)


@contextmanager
def _engine(asked: SourceOptions) -> Iterator[Engine]:
    settings = Settings() if asked.home is None else Settings(home=Path(asked.home))
    engine = Engine.open(settings)
    try:
        yield engine
    finally:
        engine.close()


def _from(engine: Engine, asked: SourceOptions) -> Lsn | None:
    """The first commit LSN asked for; None before anything can be asked."""
    if isinstance(asked.from_, datetime):
        last = engine.last_commit_upto(asked.database, asked.from_)
        return None if last is None else last.next()
    if asked.from_ is not None:
        return asked.from_
    return engine.get_min_lsn(asked.database, asked.capture_instance, asked.principal)


def _to(engine: Engine, asked: SourceOptions) -> Lsn | None:
    if isinstance(asked.to, datetime):
        return engine.last_commit_upto(asked.database, asked.to)
    return asked.to if asked.to is not None else engine.get_max_lsn(asked.database)
