"""Capture instances as rows, and the transactions that make and end them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from engine.control import JOBS, ControlDatabase
from engine.control.connections import database_id
from engine.control.instances import alter_instance, recognise_instance
from engine.errors import CaptureInstanceExists, CdcError, TooManyInstances, UnknownDatabase
from engine.model.job import CaptureParameters
from engine.model.lsn import Lsn
from tests.control.conftest import an_instance


def add(control, *instances, job=None):
    for instance in instances:
        with control.instances.add(instance, job):
            pass


def test_what_is_added_is_read_back_whole(control):
    add(control, an_instance())
    assert control.instances.list("hr") == [an_instance()]
    assert control.instances.get("hr", "hr_department") == an_instance()
    assert control.instances.get("hr", "nothing") is None


def test_what_others_add_alter_and_drop_is_seen_at_the_next_look(control, control_dsn):
    first, second = an_instance(1, "a"), an_instance(2, "b", "other")
    add(control, first, second)
    assert control.instances.list("hr") == control.instances.list() == [first, second]
    elsewhere = ControlDatabase.open(control_dsn)
    longer = replace(first.columns[1], column_type="varchar(80)")
    altered = replace(first, columns=(first.columns[0], longer), start_lsn=Lsn.at(7))
    with elsewhere._connections.begin() as connection:
        recognise_instance(connection, database_id(connection, "hr"), altered)
        alter_instance(connection, altered)
    with elsewhere.instances.remove("hr", [2]):
        pass
    third = an_instance(3, "b", "other")
    add(elsewhere, third)
    elsewhere.close()
    assert control.instances.list("hr") == control.instances.list() == [altered, third]


def test_object_ids_are_never_given_twice(control):
    ids = [control.instances.next_object_id() for _ in range(3)]
    assert sorted(set(ids)) == ids


def test_nothing_is_added_when_the_source_refuses(control):
    def refused():
        with control.instances.add(an_instance(), CaptureParameters()):
            raise CdcError("refused")

    with pytest.raises(CdcError):
        refused()
    assert control.instances.list() == []
    assert control.jobs.list() == []


def test_a_name_is_taken_once_in_a_database(control):
    add(control, an_instance())
    with pytest.raises(CaptureInstanceExists):
        add(control, an_instance(2, table="other"))


def test_a_table_has_two_instances_at_most(control):
    add(control, an_instance(1, "a"), an_instance(2, "b"))
    with pytest.raises(TooManyInstances):
        add(control, an_instance(3, "c"))


def test_of_many_that_enable_a_table_at_once_two_win(control):
    def enable(number: int) -> bool:
        try:
            add(control, an_instance(number, f"i{number}"), job=CaptureParameters())
        except TooManyInstances:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(enable, range(1, 7))) == 2
    assert len(control.jobs.list("hr")) == 1


def test_the_last_instance_takes_the_job_along(control):
    add(control, an_instance(1, "a"), an_instance(2, "b"), job=CaptureParameters())
    for object_id, jobs in ((1, 1), (2, 0)):
        with control.instances.remove("hr", [object_id]):
            pass
        assert len(control.jobs.list("hr")) == jobs


def test_dropped_change_tables_are_listed_until_they_are_gone(control):
    add(control, an_instance())
    with control.instances.remove("hr", [1]):
        pass
    [table] = control.instances.dropped("hr")
    assert (table.object_id, table.database, table.capture_instance) == (1, "hr", "hr_department")
    control.instances.forget_dropped(1)
    assert list(control.instances.dropped()) == []


def test_the_agent_hears_of_a_new_job(control):
    with control.listen(JOBS) as listener:
        add(control, an_instance(), job=CaptureParameters())
        assert listener.wait(60).payload == "hr"


def test_a_source_that_is_forgotten_takes_everything_along(control):
    add(control, an_instance(), job=CaptureParameters())
    control.remove_database("hr")
    assert control.instances.list() == []
    assert control.jobs.list() == []
    assert control.sources.list() == []
    assert [(table.database, table.capture_instance) for table in control.instances.dropped()] == [
        ("hr", "hr_department"),
        ("hr", None),
    ]
    with pytest.raises(UnknownDatabase):
        add(control, replace(an_instance(), object_id=2))
