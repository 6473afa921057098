"""A preview is what cleanup then does, table by table, statement by statement."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cleanup.plan import CleanupPlan
from engine.cleanup.run import RetentionCleanup
from engine.control.low_endpoints import low_endpoint_after
from engine.errors import LowWatermarkPassesClient
from engine.lake.obsolete_rows import ObsoleteRows
from engine.model.job import CleanupParameters
from engine.model.lsn import Lsn
from engine.query.lsn_functions import LsnTimeMapping
from engine.query.mapping_files import MappingFiles
from tests.capture.conftest import DATABASE
from tests.cleanup.conftest import PARAMETERS, commits, lease_of

DAY = timedelta(days=1)


def effects(tables):
    """What a plan and an effect have in common."""
    return [replace(each, whole_rows=None, whole_files=None, shared_files=None) for each in tables]


@pytest.mark.parametrize(("retention", "threshold"), [(65, 5000), (55, 2)])
def test_a_preview_is_what_cleanup_then_does(aged, retention, threshold):
    engine, found = aged.engine, commits(aged)
    engine.register_client(DATABASE, "slow", "public_t", None)
    engine.acknowledge(DATABASE, "slow", "public_t", found[3].next())
    engine.register_client(DATABASE, "dead", "public_u", DAY)
    later = datetime.now(UTC) + 2 * DAY  # the engine's own clock is real
    parameters = replace(PARAMETERS, retention=retention, threshold=threshold)
    plan = CleanupPlan(aged.control, aged.lake, DATABASE)
    preview = plan.preview(parameters, later)
    assert [client.name for client in engine.clients(DATABASE)] == ["slow", "dead"]  # nothing was done
    cleanup = RetentionCleanup(aged.control, aged.lake, aged.spark, lambda: later)
    outcome = cleanup.run(lease_of(aged), parameters)
    assert preview.low_endpoint == outcome.low_endpoint
    assert effects(preview.tables) == list(outcome.tables)
    assert preview.rows == outcome.deleted_rows
    assert (preview.held, preview.dropped) == (outcome.held, outcome.dropped)


def test_the_preview_of_one_table_is_what_then_goes_and_refuses_what_would_be_refused(aged):
    engine, found = aged.engine, commits(aged)
    engine.register_client(DATABASE, "etl", "public_t")
    with pytest.raises(LowWatermarkPassesClient):
        engine.cleanup_change_table_preview(DATABASE, "public_t", found[5])
    assert engine.cleanup_preview(DATABASE).parameters == CleanupParameters()
    preview = engine.cleanup_change_table_preview(DATABASE, "public_t", found[5], 3, force=True)
    [table] = preview.tables
    assert (table.rows, table.whole_rows, table.statements) == (10, 6, 3)
    assert (table.whole_files, table.shared_files) == (1, 1)
    assert [client.name for client in preview.dropped] == ["etl"]
    assert [client.name for client in engine.clients(DATABASE)] == ["etl"]
    done = engine.cleanup_change_table(DATABASE, "public_t", found[5], 3, force=True)
    assert (done.low_endpoint, done.deleted_rows) == (preview.low_endpoint, table.rows)


def test_files_answer_as_spark_does(aged):
    high = aged.engine.get_max_lsn(DATABASE)
    in_files, in_spark = (
        MappingFiles(aged.lake, DATABASE, high), LsnTimeMapping(aged.spark, aged.lake, DATABASE, high)
    )  # fmt: skip
    known = [Lsn.parse(row["start_lsn"]) for row in aged.mapping()]
    asked = [Lsn.ZERO, *known, *(lsn.next() for lsn in known), *(lsn.previous() for lsn in known)]
    assert in_files.last_upto(asked) == in_spark.last_upto(asked)
    assert in_files.times_of(asked) == in_spark.times_of(asked)
    rounded = in_spark.last_upto(asked)
    times = in_spark.times_of([lsn for lsn in rounded.values() if lsn is not None])
    upto = {lsn: times[last] for lsn, last in rounded.items() if last is not None and lsn <= high}
    assert in_files.times_upto([*asked, high.next()]) == upto
    assert in_files.first_of_time(known[1]) == in_spark.first_of_time(known[1]) == known[0]
    last = in_files.map_lsn_to_time(high)
    for minutes in (0, 50, 65, 200):
        time = last - timedelta(minutes=minutes)
        assert in_files.first_since(time) == in_spark.first_since(time)
    assert MappingFiles(aged.lake, DATABASE, None).first_since(last) is None


lsns = st.integers(1, 50).map(Lsn.at)


@given(lsns, lsns)
def test_without_a_client_a_low_endpoint_only_goes_up(start, low):
    assert low_endpoint_after(start, low, None, {}) == (max(start, low), None)


@given(st.integers(0, 100), st.integers(0, 100), st.integers(1, 20))
def test_statements_are_one_for_whole_files_and_one_for_each_threshold_of_the_rest(whole, rest, threshold):
    found = ObsoleteRows(whole + rest, whole, 0, 0)
    assert found.statements(threshold) == bool(whole) + len(range(0, rest, threshold))
