"""Clients as rows: where they begin, how they move, what keeps a low endpoint behind."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest

from engine.cleanup.error_rows import client_row
from engine.control import LeaseOf
from engine.errors import AcknowledgementRefused, ClientUnknown, LowWatermarkPassesClient
from engine.model.lsn import Lsn
from tests.control.conftest import an_instance

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
T, U = "hr_department", "hr_u"


@pytest.fixture
def two(control):
    """Instances with low endpoint 10, published up to 100."""
    for object_id, name, table in ((1, T, "department"), (2, U, "u")):
        with control.instances.add(an_instance(object_id, name, table)):
            pass
    with control._connections.begin() as connection:
        connection.exec_driver_sql("UPDATE cdc.change_tables SET start_lsn = %s", (Lsn.at(10).raw,))
        connection.exec_driver_sql(
            "INSERT INTO cdc.watermarks (database_id, high) SELECT database_id, %s FROM dbo.databases"
            " ON CONFLICT (database_id) DO UPDATE SET high = excluded.high",
            (Lsn.at(100).raw,),
        )
    return control


@pytest.fixture
def lease(two):
    return two.leases.acquire("hr", "me", 3600, LeaseOf.CLEANUP)


def register(control, name="etl", instance=T, expires_after=None, now=NOON):
    return control.clients.register("hr", instance, name, expires_after, now)


def ack(control, position, name="etl", instance=T, now=NOON):
    return control.clients.acknowledge("hr", instance, name, Lsn.at(position), now)


def starts(control):
    return {each.capture_instance: each.start_lsn.position for each in control.instances.list("hr")}


def raise_all(control, lease, position, now=NOON, **rounded):
    whole = {Lsn.at(each): Lsn.at(each) for each in range(100)}
    return control.low_endpoints.raise_all(lease, Lsn.at(position), now, whole)


def test_a_client_begins_at_the_low_endpoint_and_moves_up_only(two):
    assert register(two).acknowledged_lsn == Lsn.at(10)
    assert ack(two, 50).acknowledged_lsn == Lsn.at(50)
    assert ack(two, 50, now=NOON + DAY).acknowledged_at == NOON + DAY
    for position in (49, 5, 101):
        with pytest.raises(AcknowledgementRefused):
            ack(two, position)
    assert two.clients.list("hr")[0].acknowledged_lsn == Lsn.at(50)
    with pytest.raises(ClientUnknown):
        ack(two, 60, name="other")
    with pytest.raises(ClientUnknown):
        ack(two, 60, instance=U)


def test_registering_again_keeps_the_place_and_sets_the_limit(two):
    register(two, expires_after=DAY)
    ack(two, 50)
    again = register(two, expires_after=None, now=NOON + DAY)
    assert (again.acknowledged_lsn, again.expires_after) == (Lsn.at(50), None)
    assert (again.registered_at, again.acknowledged_at) == (NOON, NOON + DAY)
    assert register(two, instance="nobody") is None


def test_a_low_endpoint_stops_at_the_slowest_client_of_its_instance_and_at_no_other(two, lease):
    register(two, "slow")
    register(two, "fast")
    register(two, "slow", U)
    ack(two, 30, "slow")
    ack(two, 60, "fast")
    ack(two, 80, "slow", U)
    done = raise_all(two, lease, 70)
    assert starts(two) == {T: 30, U: 70}
    assert [(each.capture_instance, each.client, each.low_endpoint) for each in done.held] == [
        (T, "slow", Lsn.at(30))
    ]
    held = {(each.capture_instance, each.name): each.held_since for each in two.clients.list("hr")}
    assert held == {(T, "slow"): NOON, (T, "fast"): NOON, (U, "slow"): None}
    ack(two, 75, "fast")
    raise_all(two, lease, 70, NOON + DAY)
    held = {each.name: each.held_since for each in two.clients.list("hr", T)}
    assert held == {"slow": NOON, "fast": None}
    ack(two, 75, "slow")
    assert raise_all(two, lease, 70).held == ()
    assert starts(two) == {T: 70, U: 70}


def test_what_a_client_acknowledges_is_rounded_down_to_a_commit(two, lease):
    register(two)
    ack(two, 33)
    two.low_endpoints.raise_all(lease, Lsn.at(70), NOON, {Lsn.at(33): Lsn.at(31)})
    assert starts(two)[T] == 31
    ack(two, 44)
    two.low_endpoints.raise_all(lease, Lsn.at(70), NOON, {Lsn.at(33): Lsn.at(31)})
    assert starts(two)[T] == 31, "it came further meanwhile: the next run moves"


def test_an_instance_without_a_low_endpoint_has_clients_that_have_nothing_yet(two, lease):
    late = replace(an_instance(3, "hr_late", "late"), source_object_id=3)
    with two.instances.add(late):
        pass
    assert register(two, instance="hr_late").acknowledged_lsn is None
    with pytest.raises(AcknowledgementRefused):
        ack(two, 50, instance="hr_late")
    assert raise_all(two, lease, 70).held == ()


def test_moving_one_low_endpoint_past_a_client_is_refused_or_drops_it(two):
    register(two)
    ack(two, 30)
    two.low_endpoints.raise_one(1, Lsn.at(30))
    with pytest.raises(LowWatermarkPassesClient):
        two.low_endpoints.raise_one(1, Lsn.at(31))
    assert starts(two)[T] == 30
    two.low_endpoints.raise_one(1, Lsn.at(31), lambda client: client_row(client, "It was passed.", NOON))
    assert (starts(two)[T], two.clients.list("hr")) == (31, [])
    [row] = two.errors.list("hr")
    assert (row.error_number, row.error_severity) == (50084, 16)
    assert "'etl'" in row.error_message
    assert "It was passed." in row.error_message


def test_a_silent_client_is_dropped_past_its_limit_with_an_error_row(two):
    register(two, "etl", expires_after=DAY)
    register(two, "other", expires_after=2 * DAY)
    register(two, "ever")

    def drop(now):
        told = two.clients.drop_stale("hr", now, lambda client: client_row(client, "Silent.", now))
        return [client.name for client in told]

    assert drop(NOON + DAY - timedelta(seconds=1)) == []
    assert drop(NOON + DAY) == ["etl"]
    ack(two, 20, "other", now=NOON + DAY)
    assert drop(NOON + 2 * DAY) == []
    assert drop(NOON + 9 * DAY) == ["other"]
    assert [client.name for client in two.clients.list()] == ["ever"]
    assert len(two.errors.list("hr")) == 2


def test_clients_go_with_their_instance_and_by_hand(two):
    register(two)
    register(two, instance=U)
    assert two.clients.drop("hr", T, "etl")
    assert not two.clients.drop("hr", T, "etl")
    with two.instances.remove("hr", [2]):
        pass
    assert two.clients.list() == []


def test_who_registers_while_low_endpoints_move_begins_where_they_are_afterwards(two, lease):
    with two._connections.begin() as connection:
        connection.exec_driver_sql("SELECT FROM cdc.change_tables FOR UPDATE")
        registered = []
        thread = Thread(target=lambda: registered.append(register(two)))
        thread.start()
        connection.exec_driver_sql("UPDATE cdc.change_tables SET start_lsn = %s", (Lsn.at(70).raw,))
    thread.join()
    assert registered[0].acknowledged_lsn == Lsn.at(70)


def test_the_pace_is_told_from_an_acknowledgement_some_time_ago(two):
    register(two)
    for minutes, position in ((1, 20), (14, 30), (20, 40)):
        client = ack(two, position, now=NOON + timedelta(minutes=minutes))
    assert (client.earlier_at, client.earlier_lsn) == (NOON, Lsn.at(10))
    for minutes, position in ((21, 50), (22, 60)):
        client = ack(two, position, now=NOON + timedelta(minutes=minutes))
    assert (client.earlier_at, client.earlier_lsn) == (NOON + timedelta(minutes=20), Lsn.at(40))
