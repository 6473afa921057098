"""From a commit at the source to the command's output, with the processes that people run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from decimal import Decimal

import pytest

from engine.model.lsn import Lsn

DELETE, INSERT, OLD, NEW, MERGE = 1, 2, 3, 4, 5


def without_positions(rows):
    return [
        tuple(value for key, value in row.items() if key not in ("__$start_lsn", "__$seqval")) for row in rows
    ]


@pytest.fixture
def orders(source):
    """A table with a history: two inserts at once, an update, a key update, a delete, an insert."""
    source.sql("CREATE TABLE orders (id int PRIMARY KEY, name text, amount numeric(12,2))")
    source.sql("INSERT INTO orders VALUES (99, 'before capture', 1)")
    source.enable("orders")
    source.sql(
        "INSERT INTO orders VALUES (1, 'gauge', 10.50), (2, NULL, -0.10)",
        "UPDATE orders SET amount = 11 WHERE id = 1",
        "UPDATE orders SET id = 3 WHERE id = 2",
        "DELETE FROM orders WHERE id = 1",
        "INSERT INTO orders VALUES (4, 'Zoë 潮', NULL)",
        "UPDATE orders SET name = 'still before' WHERE id = 99",
        "BEGIN; INSERT INTO orders VALUES (5, 'never', 0); ROLLBACK",
    )
    source.sync()
    return source


def test_changes_are_exactly_what_was_written(orders):
    rows = orders.changes("public_orders", "--row-filter", "all update old")
    assert without_positions(rows) == [
        (INSERT, "0x07", 1, "gauge", Decimal("10.50")),
        (INSERT, "0x07", 2, None, Decimal("-0.10")),
        (OLD, "0x04", 1, "gauge", Decimal("10.50")),
        (NEW, "0x04", 1, "gauge", Decimal("11.00")),
        (DELETE, "0x07", 2, None, Decimal("-0.10")),
        (INSERT, "0x07", 3, None, Decimal("-0.10")),
        (DELETE, "0x07", 1, "gauge", Decimal("11.00")),
        (INSERT, "0x07", 4, "Zoë 潮", None),
        (OLD, "0x02", 99, "before capture", Decimal("1.00")),
        (NEW, "0x02", 99, "still before", Decimal("1.00")),
    ]
    assert list(rows[0]) == [
        "__$start_lsn",
        "__$seqval",
        "__$operation",
        "__$update_mask",
        "id",
        "name",
        "amount",
    ]
    commits = [row["__$start_lsn"] for row in rows]
    assert commits == sorted(commits)
    assert [commits.index(commit) for commit in commits] == [0, 0, 2, 2, 4, 4, 6, 7, 8, 8]
    assert all(str(Lsn.parse(row["__$seqval"])) == row["__$seqval"] for row in rows)

    without_old = orders.changes("public_orders")
    assert without_old == [row for row in rows if row["__$operation"] != OLD]

    process = orders.home.run("changes", "-d", orders.name, "public_orders", "--format", "json")
    assert process.stderr == ""
    assert [json.loads(line, parse_float=Decimal) for line in process.stdout.splitlines()] == without_old

    middle = orders.changes("public_orders", "--from", commits[2], "--to", commits[4])
    assert middle == rows[3:6]


@pytest.mark.parametrize(
    ("option", "inserted", "updated", "masks"),
    [
        ("all", INSERT, NEW, {3: None, 4: None, 99: None}),
        ("all with mask", INSERT, NEW, {3: "0x07", 4: "0x07", 99: "0x02"}),
        ("all with merge", MERGE, MERGE, {3: None, 4: None, 99: None}),
    ],
)
def test_net_changes(orders, option, inserted, updated, masks):
    rows = orders.changes("public_orders", "--net", "--row-filter", option)
    assert list(rows[0]) == ["__$start_lsn", "__$operation", "__$update_mask", "id", "name", "amount"]
    net = {row["id"]: (row["__$operation"], row["name"], row["amount"]) for row in rows}
    assert len(rows) == len(net)
    assert net == {
        3: (inserted, None, Decimal("-0.10")),
        4: (inserted, "Zoë 潮", None),
        99: (updated, "still before", Decimal("1.00")),
    }
    if option != "all with mask":
        assert {row["id"]: row["__$update_mask"] for row in rows} == masks
    else:
        assert next(row for row in rows if row["id"] == 99)["__$update_mask"] == "0x02"


def test_csv_and_table_say_the_same(orders):
    csv = orders.home.must("changes", "-d", orders.name, "public_orders", "--format", "csv").splitlines()
    assert csv[0] == "__$start_lsn,__$seqval,__$operation,__$update_mask,id,name,amount"
    assert [line.split(",", 2)[2] for line in csv[1:3]] == ["2,0x07,1,gauge,10.50", "2,0x07,2,,-0.10"]
    table = orders.home.must("changes", "-d", orders.name, "public_orders").splitlines()
    assert table[0].split() == csv[0].split(",")
    assert len(table) == len(csv) + 1


def test_a_reader_that_has_enough_is_no_failure(orders):
    command = orders.home.command("changes", "-d", orders.name, "public_orders", "--format", "json")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=orders.home.environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(300) == 0


TYPES = [
    ("smallint", "-7", -7),
    ("bigint", "9223372036854775807", 9223372036854775807),
    ("real", "0.1", Decimal("0.1")),
    ("double precision", "1e-300", Decimal("1e-300")),
    ("double precision", "'NaN'", "NaN"),
    ("double precision", "'-Infinity'", "-Infinity"),
    ("numeric(38,10)", "9" * 28 + ".0123456789", Decimal("9" * 28 + ".0123456789")),
    ("numeric", "0.1" + "0" * 40 + "1", "0.1" + "0" * 40 + "1"),
    ("boolean", "true", True),
    ("text", "E'Zoë says \"hi\"\\n\\\\ 潮'", 'Zoë says "hi"\n\\ 潮'),
    ("text", "''", ""),
    ("varchar(10)", "'ab '", "ab "),
    ("char(5)", "'ab'", "ab   "),
    ("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("json", "'{\"a\":  1}'", '{"a":  1}'),
    ("jsonb", "'{\"a\":  1}'", '{"a": 1}'),
    ("date", "'2024-02-29'", "2024-02-29"),
    ("timestamp", "'2024-02-29 23:59:59.000001'", "2024-02-29T23:59:59.000001"),
    ("timestamp", "'1900-01-01 00:00:00'", "1900-01-01T00:00:00"),
    ("timestamptz", "'2024-10-27 02:30:00+02'", "2024-10-27T00:30:00+00:00"),
    ("bytea", "'\\x00ffAB'", "0x00FFAB"),
    ("int[]", "'{1,NULL,3}'", [1, None, 3]),
    ("text[]", "ARRAY['a,b', '']", ["a,b", ""]),
    ("interval", "'1 day 02:00:00'", "1 day 02:00:00"),
    ("time", "'08:00:00.5'", "08:00:00.5"),
    ("inet", "'10.0.0.1/8'", "10.0.0.1/8"),
    ("int4range", "'[1,5)'", "[1,5)"),
    ("mood", "'très bien'", "très bien"),
]  # fmt: skip


def test_every_type_in_a_table_without_key_whose_names_need_quoting(source):
    columns = [f'"c.{n} {kind}"' for n, (kind, _, _) in enumerate(TYPES)]
    table = '"Größe.1"."Schlüssel [los] 潮"'
    definition = ", ".join(f"{column} {kind}" for column, (kind, _, _) in zip(columns, TYPES, strict=True))
    source.sql(
        "CREATE TYPE mood AS ENUM ('très bien')",
        'CREATE SCHEMA "Größe.1"',
        f"CREATE TABLE {table} ({definition}, again text)",
    )
    source.enable(table, "--capture-instance", "Größe")
    values = ", ".join(literal for _, literal, _ in TYPES)
    source.sql(
        f"INSERT INTO {table} VALUES ({values}, 'first')",
        f"INSERT INTO {table} DEFAULT VALUES",
        f"UPDATE {table} SET again = 'second' WHERE again IS NULL",
        f"DELETE FROM {table}",
    )
    source.sync()
    expected = [value for _, _, value in TYPES]
    nothing = [None] * len(TYPES)
    rows = source.changes("Größe", "--row-filter", "all update old")
    assert [[row["__$operation"], *list(row.values())[4:]] for row in rows] == [
        [INSERT, *expected, "first"],
        [INSERT, *nothing, None],
        [OLD, *nothing, None],
        [NEW, *nothing, "second"],
        [DELETE, *expected, "first"],
        [DELETE, *nothing, "second"],
    ]
    assert [key for key in rows[0] if not key.startswith("__$")] == [c.strip('"') for c in columns] + [
        "again"
    ]
    refused = source.home.call("changes", "-d", source.name, "Größe", "--net")
    assert refused.returncode == 1
    assert "Invalid object name 'cdc.fn_cdc_get_net_changes_Größe'" in refused.stderr


def test_some_columns_by_another_key_and_a_computed_one(source):
    source.sql(
        'CREATE TABLE "T" ("ID" int PRIMARY KEY, "Name" text NOT NULL, "Other" text,'
        ' "Twice" int GENERATED ALWAYS AS ("ID" * 2) STORED)',
        'CREATE UNIQUE INDEX "AK_T_Name" ON "T" ("Name")',
    )
    source.enable(
        "T", "--capture-instance", "T_by_name", "--columns", "ID, Name, Twice", "--index", "AK_T_Name"
    )
    source.sql(
        """INSERT INTO "T" VALUES (1, 'a', 'x')""",
        """UPDATE "T" SET "Other" = 'y'""",
        """UPDATE "T" SET "Name" = 'b'""",
        """UPDATE "T" SET "ID" = 2""",
    )
    source.sync()
    assert without_positions(source.changes("T_by_name")) == [
        (INSERT, "0x07", 1, "a", None),
        (DELETE, "0x07", 1, "a", None),
        (INSERT, "0x07", 1, "b", None),
        (NEW, "0x01", 2, "b", None),
    ]


def test_stopped_capture_loses_nothing(source):
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    source.enable("t")
    source.sync()
    assert source.changes("public_t") == []
    source.home.must("capture", "stop", "-d", source.name)
    source.sql("INSERT INTO t VALUES (1)")
    waiting = source.home.call("sync", "-d", source.name, "--timeout", "30")
    assert waiting.returncode == 1
    assert waiting.stderr.startswith("Msg 50005, Level 16, State 1: ")
    assert "highwater capture start" in waiting.stderr
    assert (
        json.loads(source.home.must("capture", "status", "-d", source.name, "--json"))["state"] == "stopped"
    )
    source.home.must("capture", "start", "-d", source.name)
    source.sync()
    assert without_positions(source.changes("public_t")) == [(INSERT, "0x01", 1)]
    assert f"cdc.{source.name}_capture: running since" in source.home.must("capture", "status")


def test_status_tells_scripts_what_they_ask_for(source):
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    source.enable("t")
    source.sync()
    done = source.home.run("status", "--json")
    status = json.loads(done.stdout)
    assert done.returncode == {"healthy": 0, "attention": 1, "failing": 2}[status["verdict"]]
    assert os.kill(status["agent"]["pid"], 0) is None
    database = next(each for each in status["databases"] if each["name"] == source.name)
    assert database["jobs"][0]["state"] == "running"
    assert Lsn.parse(database["watermarks"]["high"]) >= Lsn.parse(
        database["capture_instances"][0]["start_lsn"]
    )


def test_disabled_changes_are_gone(source):
    source.sql("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE u (id int PRIMARY KEY)")
    source.enable("t")
    source.enable("u")
    source.sync()
    source.home.must("disable", "-d", source.name, "public.t")
    assert source.home.call("changes", "-d", source.name, "public_t").returncode == 1
    assert source.changes("public_u") == []
    source.home.must("disable", "-d", source.name)
    assert source.sql("SELECT 1 FROM pg_namespace WHERE nspname = 'cdc'") == []
    assert source.sql("SELECT 1 FROM pg_replication_slots WHERE database = current_database()") == []


def test_a_change_table_whose_files_are_gone_is_said(source):
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    source.enable("t")
    source.sql("INSERT INTO t VALUES (1)")
    source.sync()
    shutil.rmtree(source.home.folder / "lake" / source.name / "cdc" / "public_t_CT")
    done = source.home.run("changes", "-d", source.name, "public_t")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Msg 50014, Level 16, State 1: The query failed: ")


def test_the_demo_stops_on_ctrl_c_and_says_what_it_did(source):
    command = source.home.command("demo", "-d", source.name, "--rate", "50", "--seed", "3")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=source.home.environment | {"PYTHONUNBUFFERED": "1"}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"The demo company is in database '{source.name}'.\n"
        process.send_signal(signal.SIGINT)
        summary = process.stdout.read()
        assert process.wait(300) == 0
    assert summary.endswith("; seed 3\n")
