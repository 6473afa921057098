"""The examples of docs/open_tables.md, run as they stand there over a real source's changes."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from engine.capture.crash_points import CrashPoint, CrashPoints, Point
from engine.cli.main import application
from engine.lake.range_files import range_of_table
from engine.model.change import START_LSN
from engine.model.lsn import Lsn
from tests.capture.conftest import DATABASE, Workbench

DOCUMENT = (Path(__file__).parents[2] / "docs" / "open_tables.md").read_text()
INSTANCE = "HR_Department"
DDL = """CREATE TABLE department
 (id int PRIMARY KEY, name text, "group name" text, budget numeric(10,2), at timestamptz, tags text[])"""


def examples(language: str, section: str) -> list[str]:
    """The blocks of a language below a heading, over this test's database."""
    text = DOCUMENT.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return [
        re.sub(r"\bdemo\b", DATABASE, block) for block in re.findall(rf"```{language}\n(.*?)```", text, re.S)
    ]


class CutError(Exception):
    pass


class Cut(CrashPoints):
    """Ends a scan when its rows are in the table and not published."""

    def reach(self, point: Point) -> None:
        if point == CrashPoint.BEFORE_PUBLISHING:
            raise CutError


@pytest.fixture
def captured(workbench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    """A home ``var`` whose table has rows below its low watermark, between, and above the high one."""
    workbench.sql(DDL)
    instance = workbench.enable("department", capture_instance=INSTANCE)
    workbench.sql("INSERT INTO department VALUES (1, 'Engineering', 'R&D', 1.50, '2026-01-05 08:00Z', '{a}')")
    workbench.sql("INSERT INTO department VALUES (2, 'Tools', 'Inventory', 2, NULL, '{b,NULL}')")
    workbench.sql("UPDATE department SET name = 'Tooling' WHERE id = 2; DELETE FROM department WHERE id = 1")
    workbench.drain()
    low = sorted({row[START_LSN] for row in workbench.rows(INSTANCE)})[1]
    workbench.control.low_endpoints.raise_one(instance.object_id, Lsn.parse(low))
    workbench.sql("INSERT INTO department VALUES (3, 'Sales')")
    with pytest.raises(CutError):
        workbench.drain(workbench.scan(Cut()))
    home = tmp_path / "var"
    home.mkdir()
    (home / "lake").symlink_to(workbench.lake.root)
    dsn = json.dumps(workbench.control._connections._dsn)
    (home / "highwater.toml").write_text(f"control_dsn = {dsn}\n")
    monkeypatch.chdir(tmp_path)
    return workbench


def run(example: str) -> dict[str, Any]:
    """The names that it leaves."""
    names: dict[str, Any] = {}
    exec(compile(example, "docs/open_tables.md", "exec"), names)
    names["engine"].close()
    return names


def ends(bench: Workbench) -> tuple[str, str]:
    low, high = bench.engine.get_min_lsn(DATABASE, INSTANCE), bench.engine.get_max_lsn(DATABASE)
    return str(low), str(high)


def check(bench: Workbench, found: Any) -> None:
    """``found``, an Arrow table, is what the query function answers; the table has rows on both sides too."""
    answer = bench.engine.get_all_changes(DATABASE, INSTANCE, *map(Lsn.parse, ends(bench)), "all update old")
    expected = answer.toArrow()
    rows = pa.table(found).select(expected.column_names).to_pylist()
    assert rows == expected.to_pylist()
    assert [row["__$operation"] for row in rows] == [2, 3, 4, 1]
    path = bench.lake.change_table(DATABASE, INSTANCE)
    assert sum(file.rows for file in range_of_table(path, START_LSN, Lsn.ZERO, Lsn.MAX).files) == 6


def test_the_examples_read_what_the_query_function_answers(captured: Workbench) -> None:
    [delta_rs] = examples("python", "delta-rs")
    check(captured, run(delta_rs)["changes"])
    [duckdb] = examples("python", "DuckDB")
    check(captured, run(duckdb)["changes"].to_arrow_table())


def test_every_way_to_the_watermarks_finds_the_same(captured: Workbench) -> None:
    section, expected = "How far to read", ends(captured)
    [python], [shell], [sql] = (examples(language, section) for language in ("python", "sh", "sql"))
    names = run(python)
    assert (str(names["low"]), str(names["high"])) == expected
    _, *arguments = shlex.split(shell)
    printed = CliRunner(env={"HIGHWATER_HOME": "var"}).invoke(application(), arguments)
    assert printed.stdout.split() == ["low,high", ",".join(expected)], printed.stderr
    with psycopg.connect(captured.control._connections._dsn) as control:
        assert control.execute(sql.encode()).fetchall() == [expected]
