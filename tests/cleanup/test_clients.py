"""Cleanup never passes the slowest client, on real change tables."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine.errors import AcknowledgementRefused, ClientUnknown, LowWatermarkPassesClient
from engine.model.lsn import Lsn
from tests.capture.conftest import DATABASE
from tests.cleanup.conftest import LEFT, PARAMETERS, cleanup_of, commits, lease_of, transactions

DAY = timedelta(days=1)


def starts(workbench):
    return {each.capture_instance: each.start_lsn for each in workbench.control.instances.list(DATABASE)}


def first_mapped(workbench):
    return Lsn.parse(workbench.mapping()[0]["start_lsn"])


def test_cleanup_waits_for_the_slowest_client_of_an_instance_and_says_so(aged):
    engine, found = aged.engine, commits(aged)
    for instance in ("public_t", "public_u"):
        engine.register_client(DATABASE, "etl", instance)
    engine.register_client(DATABASE, "fast", "public_t")
    engine.acknowledge(DATABASE, "etl", "public_t", found[2].next())  # no commit: the one before it counts
    engine.acknowledge(DATABASE, "etl", "public_u", found[6])
    engine.acknowledge(DATABASE, "fast", "public_t", found[6])
    outcome = cleanup_of(aged).run(lease_of(aged), PARAMETERS)
    assert outcome.low_endpoint == found[4]
    assert starts(aged) == {"public_t": found[2], "public_u": found[4]}
    [held] = outcome.held
    assert (held.capture_instance, held.client, held.low_endpoint) == ("public_t", "etl", found[2])
    assert transactions(aged) == [2, 2, 3, 3, 3, *LEFT]
    assert transactions(aged, "public_u") == LEFT
    # What stays keeps its times, and a low endpoint is a commit that has one.
    assert first_mapped(aged) == found[2]
    assert engine.map_lsn_to_time(DATABASE, engine.get_min_lsn(DATABASE, "public_t")) is not None
    [finding] = [each for each in engine.status().findings if "waits for client" in each.text]
    assert "highwater client drop etl -c public_t" in finding.fix
    etl, fast = engine.clients(DATABASE, "public_t")
    assert (etl.name, etl.holds_cleanup, fast.holds_cleanup) == ("etl", True, False)

    engine.acknowledge(DATABASE, "etl", "public_t", found[5])
    assert not [each for each in engine.status().findings if "waits for client" in each.text]
    outcome = cleanup_of(aged).run(lease_of(aged), PARAMETERS)
    assert outcome.held == ()
    assert transactions(aged) == LEFT
    assert first_mapped(aged) == found[4]


def test_how_far_clients_are_behind(aged):
    engine, found = aged.engine, commits(aged)
    engine.change_job(DATABASE, "cleanup", retention=85)
    engine.register_client(DATABASE, "etl", "public_t", None)
    [lag] = engine.client_lags(DATABASE)
    assert lag.lag_rows == 21
    engine.acknowledge(DATABASE, "etl", "public_t", found[2])
    [lag] = engine.client_lags(DATABASE)
    assert (lag.lag_rows, lag.lag_seconds) == (18, 80 * 60)
    assert lag.lag_bytes == found[6].position - found[2].position
    # 80 minutes behind the last commit; what was registered at was 100 minutes old.
    assert lag.forecast.expires_at is None
    assert lag.forecast.passed_at is None or lag.forecast.passed_at > aged.clock()
    engine.acknowledge(DATABASE, "etl", "public_t", found[6])
    [lag] = engine.client_lags(DATABASE)
    assert (lag.lag_rows, lag.lag_bytes, lag.lag_seconds) == (0, 0, 0)


def test_a_client_that_fell_silent_is_dropped_and_the_run_says_so(aged):
    aged.engine.register_client(DATABASE, "dead", "public_t", DAY)
    aged.engine.register_client(DATABASE, "slow", "public_u", 3 * DAY)
    aged.clock.pass_(2 * DAY.total_seconds())
    outcome = cleanup_of(aged).run(lease_of(aged), PARAMETERS)
    assert [client.name for client in outcome.dropped] == ["dead"]
    assert [held.client for held in outcome.held] == ["slow"]
    assert transactions(aged) == LEFT
    assert len(transactions(aged, "public_u")) == 21
    [error] = aged.engine.scan_errors(DATABASE)
    assert error.error_number == 50084
    with pytest.raises(ClientUnknown):
        aged.engine.acknowledge(DATABASE, "dead", "public_t", aged.engine.get_max_lsn(DATABASE))


def test_a_low_watermark_past_a_client_is_refused_unless_it_is_forced(aged):
    engine, found = aged.engine, commits(aged)
    engine.register_client(DATABASE, "etl", "public_t")
    engine.acknowledge(DATABASE, "etl", "public_t", found[3])
    before = starts(aged)
    with pytest.raises(LowWatermarkPassesClient, match="'etl'"):
        engine.cleanup_change_table(DATABASE, "public_t", found[4])
    assert starts(aged) == before
    assert engine.cleanup_change_table(DATABASE, "public_t", found[3]).deleted_rows == 3
    assert engine.cleanup_change_table(DATABASE, "public_u", found[4]).deleted_rows == 6
    assert engine.cleanup_change_table(DATABASE, "public_t", found[4], force=True).deleted_rows == 3
    assert engine.clients(DATABASE) == []
    assert [error.error_number for error in engine.scan_errors(DATABASE)] == [50084]


def test_what_is_not_there_cannot_be_acknowledged(aged):
    engine, high = aged.engine, aged.engine.get_max_lsn(DATABASE)
    engine.register_client(DATABASE, "etl", "public_t")
    for lsn in (high.next(), engine.get_min_lsn(DATABASE, "public_t").previous()):
        with pytest.raises(AcknowledgementRefused):
            engine.acknowledge(DATABASE, "etl", "public_t", lsn)
