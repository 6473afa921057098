"""What can go wrong while rows are fetched, as errors of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from engine.errors import QueryFailed


@contextmanager
def fetching() -> Iterator[None]:
    """Around everything that makes Spark work: a DataFrame fails when its rows are asked for, not before.

    Raises QueryFailed.
    """
    try:
        yield
    except PySparkException as error:
        words = str(error).strip().splitlines() or [type(error).__name__]
        raise QueryFailed(words[0]) from error
