"""A real scrape, while capture runs and while things are away."""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import UTC, datetime
from urllib.request import urlopen

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families
from psycopg.conninfo import conninfo_to_dict

from engine.agent.__main__ import serving_metrics
from engine.agent.metrics_server import MetricsServer
from engine.control.database import ControlDatabase
from engine.model.job import JobState
from engine.runtime.home import Home
from engine.settings import Settings
from tests.agent.conftest import SECONDS, until, until_state
from tests.capture.conftest import DATABASE

SCRAPE_SECONDS = 5
"""Prometheus gives up after ten by default."""


def scrape(port):
    """Samples by name and labels, as a Prometheus client reads them."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=SCRAPE_SECONDS) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def until_scraped(port, key, wanted):
    until(lambda: scrape(port).get(key) == wanted, f"{key} is {wanted}, not {scrape(port).get(key)}")


@contextmanager
def served(workbench, **options):
    control = ControlDatabase.open(workbench.control._connections._dsn)
    clock = lambda: datetime.now(UTC)  # noqa: E731
    server = MetricsServer(
        control, workbench.sources, tuple, clock, workbench.lake, read_every=0.1, **options
    )
    try:
        with server:
            yield server.serve("127.0.0.1", 0)
    finally:
        control.close()


def test_a_scrape_follows_capture(tracked, new_agent):
    new_agent()
    until_state(tracked, JobState.RUNNING)
    with served(tracked) as port:
        for number in range(3):
            tracked.sql(f"INSERT INTO t VALUES ({number}, 'a')")
        tracked.engine.sync(DATABASE, SECONDS)
        until_scraped(port, ("highwater_capture_number_of_committed_transactions_total", DATABASE), 3)
        found = scrape(port)
        assert found["highwater_capture_number_of_commands_total", DATABASE] == 3
        assert found["highwater_job_state", "capture", DATABASE, "running"] == 1
        assert found["highwater_capture_connected", DATABASE] == 1
        assert found["highwater_control_up",] == 1
        assert found["highwater_capture_instance_info", *sorted((DATABASE, "public_t", "public", "t"))] == 1
        assert found["process_resident_memory_bytes",] > 0


def test_a_source_that_is_away_does_not_hold_up_a_scrape(tracked, postgres):
    name = conninfo_to_dict(tracked.dsn)["dbname"]
    with served(tracked) as port, psycopg.connect(postgres.dsn(), autocommit=True) as server:
        until_scraped(port, ("highwater_capture_connected", DATABASE), 1)
        server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        until_scraped(port, ("highwater_capture_state", DATABASE, "unreachable"), 1)
        assert scrape(port)["highwater_capture_connected", DATABASE] == 0
        server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


def test_a_control_database_that_hangs_does_not_hold_up_a_scrape(tracked):
    dsn = tracked.control._connections._dsn
    with served(tracked, patience=0.2) as port:
        until_scraped(port, ("highwater_control_up",), 1)
        with psycopg.connect(dsn) as other:
            other.execute("LOCK TABLE cdc.watermarks, dbo.databases IN ACCESS EXCLUSIVE MODE")
            until_scraped(port, ("highwater_control_up",), 0)
            begun = time.monotonic()
            assert ("highwater_capture_connected", DATABASE) in scrape(port)
            assert time.monotonic() - begun < SCRAPE_SECONDS
            other.rollback()
        until_scraped(port, ("highwater_control_up",), 1)


def test_it_is_off_unless_asked_for_and_capture_does_without_a_port_that_is_taken(tracked, tmp_path):
    home = Home(tmp_path / "home")
    home.prepare()
    with serving_metrics(Settings(home=home.folder), home, tracked.control) as url:
        assert url is None
    with served(tracked) as port:
        settings = Settings(home=home.folder, metrics_port=port)
        with serving_metrics(settings, home, tracked.control) as url:
            assert url is None


def test_it_listens_on_the_loopback_interface_by_default(tracked, tmp_path):
    home = Home(tmp_path / "home")
    home.prepare()
    with served(tracked) as port:
        pass
    settings = Settings(home=home.folder, metrics_port=port)
    with serving_metrics(settings, home, tracked.control) as url:
        assert url == f"http://127.0.0.1:{port}/metrics"
        until_scraped(port, ("highwater_control_up",), 1)


def test_a_port_must_be_one(tmp_path):
    with pytest.raises(ValueError, match="metrics_port"):
        Settings(home=tmp_path, metrics_port=0)
