"""The record of who did what: what is older than it is to be kept goes."""

from __future__ import annotations

import psycopg

from engine.control import ControlDatabase
from engine.model.activity import Outcome
from engine.model.user import Role, User


def test_actions_that_are_too_old_go_and_the_others_stay(control: ControlDatabase, control_dsn: str):
    kept, old, unfinished = (
        control.activity.begun(User("sam", Role.ADMIN), "hr", "start_job", f"EXEC {n}") for n in range(3)
    )
    control.activity.ended(old, Outcome.OK, None, None)
    with psycopg.connect(control_dsn) as connection:
        aged = "UPDATE dbo.highwater_activity SET started = now() - %s::interval WHERE activity_id = %s"
        for number, age in ((kept, "89 days"), (old, "91 days"), (unfinished, "2 years")):
            connection.execute(aged, [age, number])
    assert control.activity.prune(90) == 2
    assert [each.activity_id for each in control.activity.list(10, None, None)] == [kept]
    assert control.activity.prune(90) == 0
