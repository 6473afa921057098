"""With a cluster for a master, tables are written and read by its executors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SECONDS = 300


def test_two_workers_write_and_read_change_tables(lake_root: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.lake.on_a_cluster", "local-cluster[2,1,512]", str(lake_root)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "SPARK_WORKER_DIR": str(tmp_path), "SPARK_LOCAL_DIRS": str(tmp_path)},
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["rows"] == [[10, "n10"], [20, "n20"], [30, "n30"]]
    assert found["processes"] == 2, "both had tasks"
