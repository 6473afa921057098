"""A home's client of the agent's Spark."""

from __future__ import annotations

import pytest

from engine.errors import AgentNotRunning
from engine.spark_client import CONNECT_PORT, SparkClient


@pytest.fixture
def client(home):
    client = SparkClient(home)
    yield client
    client.close()


def test_without_an_agent_queries_say_so(client, home):
    with pytest.raises(AgentNotRunning, match="queries need it"):
        client()
    home.record("agent")
    with pytest.raises(AgentNotRunning):
        client()


def test_a_query_goes_to_the_agent_and_the_session_is_kept(client, home, spark, connect_endpoint):
    home.keep_secret("connect-token", connect_endpoint.token)
    home.record("agent", **{CONNECT_PORT: connect_endpoint.port})
    session = client()
    assert session.sql("SELECT 1 AS one").collect()[0]["one"] == 1
    assert client() is session


def test_the_next_agent_gets_a_session_of_its_own(client, home, spark, connect_endpoint):
    home.keep_secret("connect-token", connect_endpoint.token)
    home.record("agent", **{CONNECT_PORT: 1})
    first = client()
    home.record("agent", **{CONNECT_PORT: connect_endpoint.port})
    second = client()
    assert second is not first
    assert second.range(3).count() == 3
