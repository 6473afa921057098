"""The words in the log restore a capture instance exactly; anything else is refused, never misread."""

from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.capture_instance import CapturedColumn, CaptureInstance, IndexColumn
from engine.model.lsn import Lsn
from engine.sources.postgres.log_messages import Disabled, Enabled, disabled_json, enabled_json, from_json

names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
numbers = st.integers(0, 2**31)
instances = st.builds(
    CaptureInstance,
    object_id=numbers,
    database=names,
    capture_instance=names,
    source_schema=names,
    source_table=names,
    source_object_id=numbers,
    start_lsn=st.none() | st.builds(Lsn, st.binary(min_size=10, max_size=10)),
    supports_net_changes=st.booleans(),
    role_name=st.none() | names,
    index_name=st.none() | names,
    filegroup_name=st.none() | names,
    create_date=st.datetimes(timezones=st.just(UTC)),
    columns=st.lists(
        st.builds(CapturedColumn, names, numbers, names, numbers, st.booleans(), names), max_size=3
    ).map(tuple),
    index_columns=st.lists(st.builds(IndexColumn, names, numbers, numbers), max_size=2).map(tuple),
    has_drop_pending=st.booleans(),
    partition_switch=st.booleans(),
)


@settings(deadline=None)
@given(instances)
def test_an_instance_comes_back_whole(instance: CaptureInstance) -> None:
    assert from_json(enabled_json(instance).encode("ascii")) == Enabled(instance)
    ended = Disabled(instance.capture_instance, instance.object_id)
    assert from_json(disabled_json(instance).encode("ascii")) == ended


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"null", b"[]", b"{}", b'{"event": 1}', b'{"event": "enabled", "instance": {}}']
)
def test_what_is_not_ours_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"Highwater's|unknown event"):
        from_json(content)
