"""What goes wrong in the lake, in the JVM above all, as an error of ours: nobody else need know py4j."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from engine.errors import CdcError


class LakeFailed(CdcError):  # noqa: N818 - named like the errors of engine.errors
    """The Spark session's JVM refused something, or is gone; or the lake's files did."""

    number = 50022


@contextmanager
def jvm_failures() -> Iterator[None]:
    """Around calls into the JVM. Raises LakeFailed with the cause in one line, without a stack trace."""
    try:
        yield
    except Py4JJavaError as error:
        raise LakeFailed(_line(str(error.java_exception))) from error
    except (Py4JError, PySparkException) as error:  # pyspark has classes of its own for some of Java's
        raise LakeFailed(_line(str(error))) from error


@contextmanager
def lake_failures() -> Iterator[None]:
    """Around what reads and writes tables by the JVM, by Arrow and by deltalake. Raises LakeFailed."""
    try:
        with jvm_failures():
            yield
    except (DeltaError, pa.ArrowException, OSError) as error:
        raise LakeFailed(_line(str(error))) from error


def java_class(error: Py4JJavaError | PySparkException) -> str:
    """The name of the Java class behind an error, without its package.

    Importing anything of the package delta makes pyspark convert Delta's conflicts, in the whole process.
    """
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getSimpleName())
    return type(error).__name__


def _line(text: str) -> str:
    return " ".join(text.split("\n\tat ")[0].split())
