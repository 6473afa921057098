"""Errors of the JVM as errors of ours."""

from __future__ import annotations

import pytest

from engine.lake.failures import LakeFailed, jvm_failures


def test_an_exception_of_the_jvm_is_one_line_with_its_cause(spark):
    with pytest.raises(LakeFailed) as failed, jvm_failures():
        spark._jvm.java.util.ArrayList().remove(3)
    assert str(failed.value).startswith("java.lang.IndexOutOfBoundsException: Index ")
    assert "\n" not in str(failed.value)


def test_an_exception_that_pyspark_knows_is_one_too(spark):
    with pytest.raises(LakeFailed, match='For input string: "twelve"') as failed, jvm_failures():
        spark._jvm.java.lang.Integer.parseInt("twelve")
    assert "\n" not in str(failed.value)


def test_a_call_that_the_jvm_does_not_know_is_one_too(spark):
    with pytest.raises(LakeFailed, match="no_such_method") as failed, jvm_failures():
        spark._jvm.java.lang.Integer.no_such_method()
    assert "\n" not in str(failed.value)


def test_other_errors_pass():
    with pytest.raises(ZeroDivisionError), jvm_failures():
        _ = 1 // 0
