"""``highwater changes`` where columns, intervals or answers are out of the ordinary."""

from __future__ import annotations

import csv
import io
import json
import shutil

import pytest

DELETE, INSERT, NEW = 1, 2, 4


@pytest.fixture
def twins(source):
    """A table with columns that differ only in case."""
    source.sql('CREATE TABLE twins ("Id" int PRIMARY KEY, id timestamp, "ID" text)')
    source.enable("twins")
    source.sql("INSERT INTO twins VALUES (1, '2026-01-05 08:00', 'upper')")
    source.sync()
    return source


@pytest.mark.parametrize("option", [[], ["--net"]])
def test_columns_that_differ_only_in_case_are_told_apart(twins, option):
    [row] = twins.changes("public_twins", *option)
    assert (row["Id"], row["id"], row["ID"]) == (1, "2026-01-05T08:00:00", "upper")
    text = twins.home.must("changes", "-d", twins.name, "public_twins", "--format", "csv", *option)
    heading, values = csv.reader(io.StringIO(text))
    assert heading[-3:] == ["Id", "id", "ID"]
    assert values[-3:] == ["1", "2026-01-05T08:00:00", "upper"]
    heading, _, values = twins.home.must("changes", "-d", twins.name, "public_twins", *option).splitlines()
    assert heading.split()[-3:] == ["Id", "id", "ID"]
    assert values.split()[-3:] == ["1", "2026-01-05T08:00:00", "upper"]


def test_a_table_as_of_an_lsn_is_printed_in_each_form(twins):
    [change] = twins.changes("public_twins")
    lsn = change["__$start_lsn"]
    twins.sql("UPDATE twins SET \"ID\" = 'later'", "INSERT INTO twins VALUES (2)")
    command = ("as-of", "-d", twins.name, "public_twins", "--lsn", lsn, "--format")
    assert json.loads(twins.home.must(*command, "json")) == {
        "Id": 1,
        "id": "2026-01-05T08:00:00",
        "ID": "upper",
    }
    assert twins.home.must(*command, "csv") == "Id,id,ID\n1,2026-01-05T08:00:00,upper\n"
    heading, _, values = twins.home.must(*command, "table").splitlines()
    assert (heading.split(), values.split()) == (["Id", "id", "ID"], ["1", "2026-01-05T08:00:00", "upper"])
    done = twins.home.call("as-of", "-d", twins.name, "public_twins", "--lsn", "0x" + "F" * 20)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Msg 313, Level 16, State 3: ")


HEADING = "__$start_lsn,__$seqval,__$operation,__$update_mask,id,name"
NET_HEADING = "__$start_lsn,__$operation,__$update_mask,id,name"


@pytest.fixture
def idle(source):
    """A table that is captured and has no changes."""
    source.sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    source.enable("t")
    source.sync()
    return source


def test_an_interval_without_changes_has_the_heading_and_says_so(idle):
    for options, heading in (([], HEADING), (["--net"], NET_HEADING)):
        done = idle.home.call("changes", "-d", idle.name, "public_t", "--format", "csv", *options)
        assert (done.returncode, done.stdout) == (0, f"{heading}\n")
        assert done.stderr.startswith("Note: no changes of 'public_t' from 0x")
    table = idle.home.must("changes", "-d", idle.name, "public_t").splitlines()
    assert [line.split()[0] for line in table] == ["__$start_lsn", "-" * len("__$start_lsn")]
    assert idle.home.must("changes", "-d", idle.name, "public_t", "--format", "json") == ""


def test_an_instance_not_met_in_the_log_is_told_from_one_without_changes(idle):
    idle.home.must("capture", "stop", "-d", idle.name)
    idle.sql("CREATE TABLE late (id int PRIMARY KEY, name text)")
    idle.enable("late")
    for options, heading in (([], HEADING), (["--net"], NET_HEADING)):
        done = idle.home.call("changes", "-d", idle.name, "public_late", "--format", "csv", *options)
        assert (done.returncode, done.stdout) == (0, f"{heading}\n")
        assert "'public_late' is not captured yet" in done.stderr
        assert f"highwater sync -d {idle.name}" in done.stderr


def test_a_range_of_an_instance_not_met_in_the_log_is_outside_of_what_is_valid(idle):
    idle.home.must("capture", "stop", "-d", idle.name)
    idle.sql("CREATE TABLE late (id int PRIMARY KEY, name text)")
    idle.enable("late")
    high = json.loads(idle.home.call("status", "--json").stdout)["databases"]
    lsn = next(each["watermarks"]["high"] for each in high if each["name"] == idle.name)
    done = idle.home.call("changes", "-d", idle.name, "public_late", "--from", lsn, "--to", lsn)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Msg 313, Level 16, State 3: ")


def test_a_query_that_fails_is_one_line_on_stderr(idle):
    """Spark's client would write the error there too, as JSON, where it can name the place in the query."""
    idle.sql("CREATE TABLE narrow (id int PRIMARY KEY)")
    idle.enable("narrow")
    idle.sync()
    lake = idle.home.folder / "lake" / idle.name / "cdc"
    shutil.rmtree(lake / "public_t_CT")
    shutil.copytree(lake / "public_narrow_CT", lake / "public_t_CT")
    done = idle.home.run("changes", "-d", idle.name, "public_t")
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("Msg 50014, Level 16, State 1: The query failed: ")
