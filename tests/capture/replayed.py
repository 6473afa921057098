"""What readers of a workbench see, compared with what its source committed."""

from __future__ import annotations

from collections import Counter

from engine.model.lsn import Lsn
from tests.capture.conftest import DATABASE, Workbench
from tests.faults.oracle import difference, expected_rows, in_order
from tests.faults.source_replay import SourceReplay
from tests.faults.write_load import TABLES


def check(workbench: Workbench, replay: SourceReplay) -> None:
    """What readers see is exactly what the source committed up to the watermark."""
    high = workbench.control.watermarks.get(DATABASE).high or Lsn.ZERO
    transactions = replay.transactions()
    commits = set()
    for table in TABLES:
        expected = [row for row in expected_rows(transactions, table) if row["__$start_lsn"] <= str(high)]
        found = in_order(workbench.rows(table.capture_instance))
        assert difference(expected, found) is None, table.name
        commits |= {row["__$start_lsn"] for row in expected}
    mapping = Counter(row["start_lsn"] for row in workbench.mapping() if row["start_lsn"] <= str(high))
    assert set(mapping.values()) <= {1}
    assert commits <= set(mapping)
