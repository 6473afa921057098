"""sys.sp_MScdc_cleanup_job on real change tables (reference/behaviour.md, 4)."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from engine.errors import CleanupFailed, JobMissing, LeaseLost, LowEndpointNotComputed
from engine.model.cleanup import RetentionOutcome
from tests.capture.conftest import DATABASE
from tests.cleanup.conftest import (
    LEFT,
    PARAMETERS,
    age,
    cleanup_of,
    commits,
    lease_of,
    transactions,
    versions,
)


def errors(workbench):
    return [(error.error_number, error.error_severity) for error in workbench.engine.scan_errors(DATABASE)]


def starts(workbench):
    return {each.capture_instance: each.start_lsn for each in workbench.control.instances.list(DATABASE)}


def test_changes_older_than_the_retention_go_everywhere(aged):
    watermark, high = commits(aged)[4], aged.engine.get_max_lsn(DATABASE)
    aged.engine.change_job(DATABASE, "cleanup", retention=65)
    outcome = aged.engine.cleanup(DATABASE)
    # 6 rows of each table, and what the mapping has of 1, 2, 3 and of enabling the two
    assert outcome == RetentionOutcome(watermark, 6 + 6 + 5)
    assert transactions(aged) == transactions(aged, "public_u") == LEFT
    assert starts(aged) == {"public_t": watermark, "public_u": watermark}
    assert aged.mapping()[0]["start_lsn"] == str(watermark)
    assert aged.engine.get_all_changes(DATABASE, "public_t", watermark, high).count() == 15
    assert aged.engine.cleanup(DATABASE).deleted_rows == 0
    assert errors(aged) == []


def test_capture_goes_on_where_cleanup_was_and_readers_see_it(aged_anew):
    aged = aged_anew
    scan = aged.scan()
    aged.drain(scan)
    cleanup_of(aged).run(lease_of(aged), PARAMETERS)
    aged.sql("INSERT INTO t VALUES (701, 7)")
    aged.drain(scan)
    assert transactions(aged) == [*LEFT, 7]
    newest = aged.engine.newest_changes(DATABASE, 1, "public_t")
    assert newest is not None
    assert newest["public_t"]["tran"].to_pylist()[-1] == 7


def test_of_commits_with_one_time_the_first_counts_and_a_time_between_is_rounded_up(aged):
    age(aged, {3: 65, 4: 65})
    outcome = cleanup_of(aged).run(lease_of(aged), PARAMETERS)
    assert outcome.low_endpoint == commits(aged)[3]
    outcome = cleanup_of(aged).run(lease_of(aged), replace(PARAMETERS, retention=64))
    assert outcome.low_endpoint == commits(aged)[5]


def test_times_that_fall_keep_what_is_younger_than_asked(aged):
    age(aged, {2: 10})
    outcome = cleanup_of(aged).run(lease_of(aged), PARAMETERS)
    assert outcome.low_endpoint == commits(aged)[2]


def test_a_low_endpoint_that_is_higher_already_stays(aged):
    found = commits(aged)
    aged.engine.cleanup_change_table(DATABASE, "public_u", found[6])
    cleanup_of(aged).run(lease_of(aged), PARAMETERS)
    assert starts(aged) == {"public_t": found[4], "public_u": found[6]}
    assert transactions(aged, "public_u") == [6] * 6
    assert aged.mapping()[0]["start_lsn"] == str(found[4])


def test_what_an_earlier_cleanup_left_below_its_low_endpoint_goes_too(aged):
    instance = aged.control.instances.get(DATABASE, "public_u")
    aged.control.low_endpoints.raise_one(instance.object_id, commits(aged)[6])
    cleanup_of(aged).run(lease_of(aged), PARAMETERS)
    assert transactions(aged, "public_u") == [6] * 6


def test_an_instance_that_was_not_met_in_the_log_is_left_alone(aged):
    aged.sql("CREATE TABLE late (id int PRIMARY KEY)")
    aged.enable("late")
    outcome = cleanup_of(aged).run(lease_of(aged), PARAMETERS)
    assert outcome.failures == ()
    assert starts(aged)["public_late"] is None


def test_no_statement_deletes_more_than_the_threshold_where_files_are_shared(aged):
    paths = [aged.lake.change_table(DATABASE, "public_t"), aged.lake.lsn_time_mapping(DATABASE)]
    before = [len(versions(aged, path)) for path in paths]
    told = []
    cleanup_of(aged).run(lease_of(aged), replace(PARAMETERS, retention=55, threshold=2), progress=told.append)
    made = [versions(aged, path)[count:] for path, count in zip(paths, before, strict=True)]
    # 1, 2 and 3 were a file of their own; 4 rows of 4 shared another, which is parted first.
    assert made[0] == ["DELETE", "OPTIMIZE", "DELETE", "DELETE"]
    assert told == [6, 8, 10, 16, 18, 20, *told[6:]]
    assert transactions(aged) == [5] * 5 + [6] * 6


def test_told_to_stop_it_ends_after_its_statement_and_the_next_run_goes_on(aged):
    told = []
    cleanup = cleanup_of(aged)
    outcome = cleanup.run(lease_of(aged), PARAMETERS, lambda: bool(told), told.append)
    assert (outcome.deleted_rows, outcome.stopped, told) == (6, True, [6])
    assert set(starts(aged).values()) == {commits(aged)[4]}
    assert len(transactions(aged)) + len(transactions(aged, "public_u")) == 15 + 21
    assert cleanup.run(lease_of(aged), PARAMETERS).deleted_rows == 6 + 5


def test_a_table_that_fails_stops_no_other_and_its_low_endpoint_stays_moved(aged):
    path = aged.lake.change_table(DATABASE, "public_t")
    aged.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    aged.engine.change_job(DATABASE, "cleanup", retention=65)
    with pytest.raises(CleanupFailed, match="public_t"):
        aged.engine.cleanup(DATABASE)
    assert transactions(aged, "public_u") == LEFT
    assert len(transactions(aged)) == 21
    assert set(starts(aged).values()) == {commits(aged)[4]}
    assert errors(aged) == [(22852, 10), (22924, 16)]
    aged.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
    assert aged.engine.cleanup(DATABASE).deleted_rows == 6
    assert transactions(aged) == LEFT


def test_a_mapping_that_fails_is_told_by_its_own_number(aged):
    path = aged.lake.lsn_time_mapping(DATABASE)
    aged.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    outcome = cleanup_of(aged).run(lease_of(aged), PARAMETERS)
    assert [line.split(",")[0] for line in outcome.failures] == ["Msg 22853"]
    assert errors(aged) == [(22853, 10), (22924, 16)]
    assert transactions(aged) == LEFT


def test_where_no_low_endpoint_can_be_computed_nothing_changes(aged):
    before = starts(aged)
    path = aged.lake.lsn_time_mapping(DATABASE)
    aged.spark.sql(f"DELETE FROM delta.`{path}` WHERE start_lsn = '{aged.engine.get_max_lsn(DATABASE)}'")
    with pytest.raises(LowEndpointNotComputed, match="retention 65"):
        cleanup_of(aged).run(lease_of(aged), PARAMETERS)
    assert errors(aged) == [(22923, 16)]
    assert starts(aged) == before
    assert len(transactions(aged)) == 21


def test_a_table_that_is_disabled_meanwhile_is_no_failure(aged):
    def disable(deleted: int) -> None:
        if deleted == 6:
            aged.engine.disable_table(DATABASE, "public", "u", "all")

    outcome = cleanup_of(aged).run(lease_of(aged), PARAMETERS, progress=disable)
    assert (outcome.deleted_rows, outcome.failures) == (6 + 5, ())


def test_who_loses_the_lease_deletes_no_more(aged):
    lease = lease_of(aged)
    with pytest.raises(LeaseLost):
        cleanup_of(aged).run(lease, PARAMETERS, progress=lambda _: lease_of(aged))
    assert len(transactions(aged)) + len(transactions(aged, "public_u")) == 15 + 21
    with pytest.raises(LeaseLost):
        cleanup_of(aged).run(lease, replace(PARAMETERS, retention=1))
    assert set(starts(aged).values()) == {commits(aged)[4]}


def test_who_has_lost_the_lease_tells_of_no_error(aged):
    lost, path = lease_of(aged), aged.lake.lsn_time_mapping(DATABASE)
    lease_of(aged)
    shutil.rmtree(path)
    with pytest.raises(LeaseLost):
        cleanup_of(aged).run(lost, PARAMETERS)
    assert errors(aged) == []


def test_one_cleanup_at_a_time(aged):
    lease_of(aged)
    with pytest.raises(CleanupFailed, match="runs already"):
        aged.engine.cleanup(DATABASE)
    aged.engine.drop_job(DATABASE, "cleanup")
    with pytest.raises(JobMissing):
        aged.engine.cleanup(DATABASE)


def test_where_nothing_has_been_captured_there_is_nothing_to_clean_up(workbench):
    workbench.engine.add_job(DATABASE, "cleanup", start_job=0)
    assert workbench.engine.cleanup(DATABASE) == RetentionOutcome(None, 0)
