"""The bit of a whole column of masks, against the answer for one mask."""

import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from engine.lake.spark import ConnectEndpoint, connect_session
from engine.model.mask import is_bit_set, mask_of
from engine.query import mask_columns

MASKS = [None, b"", b"\x00", b"\xff", b"\x01\x00", mask_of([1, 8, 9, 1024], 1024)]


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.none() | st.binary(max_size=128), min_size=40, max_size=40),
    st.sets(st.integers(1, 1024), min_size=20, max_size=20),
)
def test_every_mask_and_position_is_answered_as_one_mask_is(
    spark: SparkSession, masks: list[bytes | None], positions: set[int]
) -> None:
    masks, asked = [*masks, *MASKS], sorted({*positions, 1, 8, 9, 16, 17, 1024})
    rows = spark.createDataFrame(list(enumerate(masks)), "n int, `__$update_mask` binary")
    bits = rows.select("n", *(mask_columns.is_bit_set(position) for position in asked)).collect()
    expected = {n: [is_bit_set(position, mask) for position in asked] for n, mask in enumerate(masks)}
    assert {row[0]: list(row[1:]) for row in bits} == expected


def test_as_text_over_connect_and_for_another_column(
    spark: SparkSession, connect_endpoint: ConnectEndpoint
) -> None:
    client = connect_session(connect_endpoint)
    try:
        rows = client.sql("SELECT X'0100' AS `my mask`")
        found = rows.selectExpr(*(mask_columns.bit_set_text(n, "my mask") for n in (1, 9, 17))).toArrow()
    finally:
        client.stop()
    assert [column[0].as_py() for column in found.columns] == [False, True, False]


CLIENT = """
import sys
from engine.lake.spark import ConnectEndpoint, connect_session
from engine.query.mask_columns import is_bit_set

session = connect_session(ConnectEndpoint(int(sys.argv[1]), sys.argv[2]))
rows = session.sql("SELECT X'0100' AS `__$update_mask`")
print([bool(value) for value in rows.select(is_bit_set(1), is_bit_set(9)).collect()[0]])
"""


def test_a_client_process_makes_columns_for_its_own_session(
    spark: SparkSession, connect_endpoint: ConnectEndpoint
) -> None:
    arguments = [str(connect_endpoint.port), connect_endpoint.token]
    client = subprocess.run(
        [sys.executable, "-c", CLIENT, *arguments], capture_output=True, text=True, check=False
    )
    assert client.stdout.strip() == "[False, True]", client.stderr


@pytest.mark.parametrize("position", [0, -1, 1025])
def test_a_position_that_no_mask_has_is_refused(position: int) -> None:
    with pytest.raises(ValueError, match="not within"):
        mask_columns.bit_set_text(position)
