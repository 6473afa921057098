"""Views of a statement over change data."""

from __future__ import annotations

import os
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from engine.errors import QueryFailed
from engine.lake.spark import ConnectEndpoint, connect_session
from engine.query.ad_hoc import AdHocQuery


def test_views_of_a_session_that_is_gone_need_not_be_dropped(
    spark: SparkSession, connect_endpoint: ConnectEndpoint
) -> None:
    with patch.dict(os.environ):  # a Connect client leaves a mark there
        session = connect_session(connect_endpoint)
        query = AdHocQuery(session)
        view = query.rows([(1,), (2,)], [("n", "int")])
        columns, rows = query.run(f"SELECT n FROM {view} ORDER BY n")
        assert (columns, list(rows)) == ([("n", "int")], [(1,), (2,)])
        session.stop()
        with pytest.raises(QueryFailed):
            query.run(f"SELECT n FROM {view}")
        query.close()
