"""Forms say to the browser itself what their fields begin with: see `FormField`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dashboard.components.form_field import FormField
from engine.engine import Engine
from engine.model.alert import AlertHook
from engine.model.collection import DEFAULT_SET
from engine.model.dashboard import DashboardSettings
from engine.model.job import CaptureParameters, CleanupParameters
from tests.dashboard.conftest import Dashboard


@pytest.fixture
def tuned(engine: Engine, connect: Callable[[str], str]) -> Engine:
    """A database with everything configured otherwise than by default, and than its least."""
    name = connect("CREATE TABLE department (id int PRIMARY KEY, name text)")
    engine.enable_db(name)
    engine.enable_table(name, "public", "department", role_name=None)
    engine.change_job(name, maxtrans=700, maxscans=7, pollinginterval=70)
    engine.change_job(name, "cleanup", retention=7000, threshold=70, schedule="7 7 * * *")
    engine.update_collection_set(DEFAULT_SET, schedule="*/7 * * * *", days_until_expiration=77)
    engine.set_dashboard_settings(DashboardSettings(exports=False, zone="Local"))
    engine.set_alert_hook(AlertHook(command="/bin/true", lag_seconds=7, stall_seconds=77, slot_bytes=777))
    return engine


@pytest.mark.parametrize(
    ("page", "fields"),
    [
        ("capture", {"k_maxtrans": 700, "k_maxscans": 7, "k_pollinginterval": 70, "k_continuous": 0}),
        ("cleanup", {"l_retention": 7000, "l_threshold": 70, "l_schedule": "7 7 * * *"}),
        ("collector", {"o_days": 77, "o_schedule": 0}),
        ("settings", {"u_lag_seconds": 7, "u_stall_seconds": 77, "u_slot_bytes": 777, "u_exports": False}),
    ],
)
def test_a_browser_that_missed_a_run_still_begins_with_what_is_configured(
    tuned: Engine, dashboard: Dashboard, page: str, fields: dict[str, object]
) -> None:
    dashboard.open(page)
    for _ in range(2):
        for name, value in fields.items():
            drawn = dashboard.field(name).proto
            assert drawn.default == value
            assert not drawn.set_value
        dashboard.run()


def test_of_two_who_save_one_form_each_changes_what_they_typed(tuned: Engine, dashboard: Dashboard) -> None:
    def type_and_save(
        page: str, field: str, value: object, button: str, meanwhile: Callable[[], None]
    ) -> None:
        dashboard.open(page)
        dashboard.field(field).set_value(value)
        dashboard.run()
        meanwhile()
        dashboard.click(button)

    type_and_save("capture", "k_maxtrans", 800, "k_save", lambda: tuned.change_job("hr", maxscans=8))
    type_and_save(
        "cleanup", "l_retention", 8000, "l_save", lambda: tuned.change_job("hr", "cleanup", threshold=80)
    )
    type_and_save(
        "collector",
        "o_days",
        88,
        "o_save",
        lambda: tuned.update_collection_set(DEFAULT_SET, schedule="*/8 * * * *"),
    )
    type_and_save(
        "settings",
        "u_exports",
        True,
        "u_save",
        lambda: tuned.set_dashboard_settings(DashboardSettings(exports=False, zone="Relative")),
    )
    type_and_save(
        "settings",
        "u_lag_seconds",
        8,
        "u_save_hook",
        lambda: tuned.set_alert_hook(replace(tuned.alert_hook(), command="/bin/false", slot_bytes=888)),
    )
    capture, cleanup = (job.configured for job in tuned.help_jobs("hr"))
    assert capture == CaptureParameters(maxtrans=800, maxscans=8, pollinginterval=70)
    assert cleanup == CleanupParameters(retention=8000, threshold=80)
    kept = tuned.collection_sets()[0]
    assert (kept.schedule, kept.days_until_expiration) == ("*/8 * * * *", 88)
    assert tuned.dashboard_settings() == DashboardSettings(exports=True, zone="Relative")
    assert tuned.alert_hook() == AlertHook(
        command="/bin/false", lag_seconds=8, stall_seconds=77, slot_bytes=888
    )


def test_a_field_begins_anew_when_what_it_is_about_has_changed() -> None:
    first, same, other = (FormField("f", 1, of) for of in (("db", 1), ("db", 1), ("db", 2)))
    assert first.key == same.key != other.key
    assert first.key.startswith("f_")
