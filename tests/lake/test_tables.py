"""Places and shapes of the lake's tables."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.lake.tables import Lake, arrow_type, change_table_schema, lake_columns
from tests.lake.change_tables import capture_instance


def test_tables_lie_below_the_databases_cdc_schema(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    assert lake.change_table("shop", "dbo_orders") == f"{tmp_path}/shop/cdc/dbo_orders_CT"
    assert lake.lsn_time_mapping("shop") == f"{tmp_path}/shop/cdc/lsn_time_mapping"


def test_a_relative_root_is_below_the_current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert Lake("var/lake").root == str(tmp_path / "var/lake")


def test_a_uri_stays_a_uri() -> None:
    assert Lake("s3a://bucket/lake/").change_table("a", "b") == "s3a://bucket/lake/a/cdc/b_CT"


@given(st.text(min_size=1), st.text(min_size=1))
def test_every_name_is_one_safe_segment_of_its_own(one: str, other: str) -> None:
    paths = [Lake("/lake").change_table(name, "t") for name in (one, other)]
    segments = [path.removeprefix("/lake/").removesuffix("/cdc/t_CT") for path in paths]
    assert all("/" not in segment and segment not in ("", ".", "..") for segment in segments)
    assert (segments[0] == segments[1]) == (one == other)


@pytest.mark.parametrize(
    ("lake_type", "expected"),
    [
        ("smallint", pa.int16()),
        ("int", pa.int32()),
        ("bigint", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("boolean", pa.bool_()),
        ("string", pa.string()),
        ("binary", pa.binary()),
        ("date", pa.date32()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("decimal(12,2)", pa.decimal128(12, 2)),
        ("decimal(38, 0)", pa.decimal128(38, 0)),
        ("array<array<decimal(5,1)>>", pa.list_(pa.list_(pa.decimal128(5, 1)))),
    ],
)
def test_a_lake_type_is_an_arrow_type(lake_type: str, expected: pa.DataType) -> None:
    assert arrow_type(lake_type) == expected


@pytest.mark.parametrize("lake_type", ["money", "array<>", "decimal", "map<int,int>", ""])
def test_other_types_are_refused(lake_type: str) -> None:
    with pytest.raises(ValueError, match="is not a type of the lake"):
        arrow_type(lake_type)


def test_metadata_columns_come_first_and_the_command_id_last() -> None:
    schema = change_table_schema(capture_instance({"id": "int", "name": "string"}))
    assert schema.names == [
        "__$start_lsn",
        "__$end_lsn",
        "__$seqval",
        "__$operation",
        "__$update_mask",
        "id",
        "name",
        "__$command_id",
    ]


def test_names_that_differ_only_in_case_are_kept_apart() -> None:
    instance = capture_instance({"Id": "int", "id": "int", "ID (2)": "int", "__$Command_ID": "int"})
    assert lake_columns(instance) == ("Id", "id (2)", "ID (2) (2)", "__$Command_ID (2)")
