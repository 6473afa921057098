"""A source with a password and a role of the least rights: what that can do, and who reads the secrets."""

import json
import os
import stat
import subprocess
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from engine.runtime.embedded_postgres import EmbeddedPostgres
from engine.runtime.embedded_postgres import _binaries as binaries
from engine.runtime.home import Home
from engine.sources.postgres.names import EVENT_TRIGGERS, always

PASSWORD = "hush-5d1c-wachsam"
ROLE, OWNER = "least_rights", "shop_owner"
DOCS = Path(__file__).parents[2] / "docs"


def psql(dsn, script, **variables):
    """Runs a script as its head says."""
    chosen = [word for name, value in variables.items() for word in ("-v", f"{name}={value}")]
    subprocess.run(
        [str(binaries() / "psql"), "--quiet", "--no-psqlrc", *chosen, "-f", str(DOCS / script), dsn],
        check=True,
        capture_output=True,
    )


def execute(dsn, *statements):
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="module")
def shop(home, postgres):
    """A connected database whose tables are `shop_owner`'s, made by the documented scripts alone."""
    admin = postgres.dsn("shop_of_security")
    execute(
        postgres.dsn(),
        "DROP DATABASE IF EXISTS shop_of_security",
        f"DROP ROLE IF EXISTS {ROLE}",
        f"DROP ROLE IF EXISTS {OWNER}",
        f"CREATE ROLE {OWNER} LOGIN",
        f"CREATE DATABASE shop_of_security OWNER {OWNER}",
    )
    psql(admin, "capture_role.sql", role=ROLE, owner=OWNER)
    execute(admin, f"ALTER ROLE {ROLE} PASSWORD '{PASSWORD}'")
    execute(
        admin.replace("postgres@", f"{OWNER}@"), "CREATE TABLE public.orders (id int PRIMARY KEY, note text)"
    )
    home.must("connect", "shop", admin.replace("postgres@", f"{ROLE}:{PASSWORD}@"))
    yield admin.replace("postgres@", f"{OWNER}@")
    home.must("disable", "-d", "shop")
    home.must("disconnect", "shop")
    assert execute(admin, "SELECT FROM pg_namespace WHERE nspname = 'cdc'") == []
    assert execute(admin, "SELECT FROM pg_replication_slots WHERE database = current_database()") == []
    execute(postgres.dsn(), "DROP DATABASE shop_of_security", f"DROP ROLE {ROLE}", f"DROP ROLE {OWNER}")


def test_the_documented_role_has_no_other_right(shop, postgres):
    [(superuser, create_role, create_db, bypass, replication)] = execute(
        shop,
        "SELECT rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication"
        f" FROM pg_roles WHERE rolname = '{ROLE}'",
    )
    assert (superuser, create_role, create_db, bypass, replication) == (False, False, False, False, True)
    [(roles,)] = execute(
        shop,
        "SELECT array_agg(r.rolname::text) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid"
        f" WHERE m.member = '{ROLE}'::regrole",
    )
    assert roles == [OWNER]


def test_the_documented_role_writes_its_marks_where_nobody_else_may(home, shop):
    admin = shop.replace(f"{OWNER}@", "postgres@")
    functions = [
        f"pg_logical_emit_message(boolean, text, {content}, boolean)" for content in ("text", "bytea")
    ]
    execute(admin, *(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC" for function in functions))
    psql(admin, "capture_role.sql", role=ROLE, owner=OWNER)
    execute(shop, "CREATE TABLE public.marked (id int PRIMARY KEY)")
    home.must("enable", "-d", "shop", "public.marked")
    execute(shop, "ALTER TABLE public.marked ADD note text", "INSERT INTO public.marked VALUES (1, 'a')")
    home.must("sync", "-d", "shop", "--timeout", "600")
    assert [row["id"] for row in home.changes("shop", "public_marked")] == [1]
    home.must("disable", "-d", "shop", "public.marked")
    execute(admin, *(f"GRANT EXECUTE ON FUNCTION {function} TO PUBLIC" for function in functions))


def test_nobody_else_ends_a_table_s_capture(home, shop):
    """PostgreSQL lets everybody write into the log, also what looks like the words by which capture ends."""
    execute(shop, "CREATE TABLE public.guarded (id int PRIMARY KEY)")
    home.must("enable", "-d", "shop", "public.guarded")
    [(table,)] = execute(shop, "SELECT 'guarded'::regclass::oid::bigint")
    for word in (
        {"event": "dropped", "table_id": table, "ddl": "DROP TABLE guarded"},
        {
            "event": "altered",
            "table_id": table,
            "schema": "public",
            "table": "guarded",
            "columns": [],
            "ddl": "",
        },
        *({"event": "disabled", "capture_instance": "public_guarded", "object_id": n} for n in range(1, 20)),
    ):
        execute(shop, f"SELECT pg_logical_emit_message(true, 'highwater', '{json.dumps(word)}')")
    execute(shop, "INSERT INTO guarded VALUES (1)")
    home.must("sync", "-d", "shop", "--timeout", "600")
    assert [row["id"] for row in home.changes("shop", "public_guarded")] == [1]
    home.must("disable", "-d", "shop", "public.guarded")


def test_the_documented_event_triggers_are_those_that_enabling_makes():
    script = (DOCS / "event_triggers.sql").read_text()
    statements = [line.rstrip(";") for line in script.splitlines() if "EVENT TRIGGER highwater" in line]
    assert statements == [*EVENT_TRIGGERS.values(), *map(always, EVENT_TRIGGERS)]


def test_the_documented_rights_are_enough(home, shop, postgres):
    def notes():
        home.must("sync", "-d", "shop", "--timeout", "600")
        rows = home.changes("shop", "public_orders")
        return [(row["__$operation"], row.get("id"), row.get("note")) for row in rows]

    home.must("enable", "-d", "shop", "public.orders")
    execute(shop, "INSERT INTO orders VALUES (1, 'a')", "UPDATE orders SET note = 'b'")
    assert notes() == [(2, 1, "a"), (4, 1, "b")]
    # DDL without event triggers, told by the shape of the rows …
    execute(shop, "ALTER TABLE orders ADD more int", "INSERT INTO orders VALUES (2, 'c', 3)")
    assert notes()[2:] == [(2, 2, "c")]
    # … and with those that a superuser made.
    psql(postgres.dsn("shop_of_security"), "event_triggers.sql")
    execute(shop, "ALTER TABLE orders RENAME note TO remark", "INSERT INTO orders VALUES (3, 'd', 4)")
    assert notes()[3:] == [(2, 3, "d")]
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        execute(shop, "ALTER TABLE orders REPLICA IDENTITY DEFAULT")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        execute(shop, "TRUNCATE orders")
    home.must("cleanup", "table", "-d", "shop", "public_orders")
    assert "capturing" in (said := home.call("status").stdout) or "quiet" in said
    home.must("disable", "-d", "shop", "public.orders")
    assert execute(shop, "SELECT relreplident::text FROM pg_class WHERE relname = 'orders'") == [("d",)]
    home.must("enable", "-d", "shop", "public.orders")
    execute(shop, "DROP TABLE orders", "CREATE TABLE orders (id int PRIMARY KEY)")
    home.must("sync", "-d", "shop", "--timeout", "600")


def secrets_of(home):
    folder = Home(home.folder)
    return {"password": PASSWORD, "token": folder.connect_token}


@pytest.fixture(scope="module")
def used(home, shop):
    """The home after calls that succeeded, failed and were written down, with what they said."""
    wrong = f"postgresql://{ROLE}:{PASSWORD}@127.0.0.1:1/shop"
    calls = [
        ("connect", "another", wrong),
        ("connect", "bad", f"postgresql://u:{PASSWORD}@h:x y/"),
        ("status",), ("status", "--json"), ("doctor",), ("activity",), ("errors", "-d", "shop"),
        ("sql", "-d", "shop", "-q", "SELECT 1/0; EXEC highwater.connect"),
        ("sql", "-d", "shop", "-q", f"EXEC highwater.connect @name = N'x', @dsn = N'{wrong}'"),
        ("alerts", "list"), ("client", "list"),
    ]  # fmt: skip
    done = [home.call(*call) for call in calls]
    return "".join(each.stdout + each.stderr for each in done)


@pytest.mark.parametrize("name", ["password", "token"])
def test_no_secret_is_said(home, used, name):
    secret = secrets_of(home)[name]
    assert secret not in used
    assert secret not in home.folder.with_name(f"{home.folder.name}.log").read_text()


@pytest.mark.parametrize("name", ["password", "token"])
def test_no_secret_is_in_a_process_s_arguments(home, used, name):
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert any("engine.agent" in line for line in lines)
    assert not [line for line in lines if secrets_of(home)[name] in line]


def test_no_secret_is_in_the_control_database(home, used):
    with psycopg.connect(EmbeddedPostgres(Home(home.folder).postgres).dsn("msdb")) as connection:
        tables = connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_schema NOT IN ('pg_catalog', 'information_schema') AND table_type = 'BASE TABLE'"
        ).fetchall()

        def holding(text):
            query = sql.SQL("SELECT count(*) FROM {} t WHERE strpos(t::text, %s) > 0")
            return [
                table
                for table in tables
                if connection.execute(query.format(sql.Identifier(*table)), [text]).fetchall() != [(0,)]
            ]

        assert holding(ROLE) != []
        assert [holding(secret) for secret in secrets_of(home).values()] == [[], []]


@pytest.mark.parametrize("name", ["password", "token"])
def test_secrets_are_in_files_for_their_owner_alone(home, used, name):
    """Logs, lake and what is known of processes are searched too; the databases' own files are not."""
    secret = secrets_of(home)[name].encode()
    folder = Home(home.folder)
    holding = []
    for path in home.folder.rglob("*"):
        if path.is_file() and not path.is_relative_to(folder.postgres) and secret in path.read_bytes():
            holding.append(path)
    assert any(path.parent == folder.secrets for path in holding)
    assert [path for path in holding if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
    assert stat.S_IMODE(folder.secrets.stat().st_mode) == 0o700
    assert secret not in folder.postgres.joinpath("server.log").read_bytes()


def test_no_secret_is_in_the_environment_of_a_process(home, used):
    """Whoever may read it is the same user, yet children, crash reports and containers pass it on."""
    secrets = [secret.encode() for secret in secrets_of(home).values()]
    for process in psutil.process_iter(["cmdline"]):
        if any(str(home.folder) in word for word in process.info["cmdline"] or []):
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            assert not [secret for secret in secrets if secret in environment]


def test_a_password_comes_from_standard_input(home, shop):
    """``connect NAME -``: so it is in no shell's history and no list of processes."""
    dsn = conninfo_to_dict(shop)
    given = f"postgresql://{ROLE}:{PASSWORD}@127.0.0.1:1/{dsn['dbname']}\n"
    command = home.command("connect", "typed", "-")
    done = subprocess.run(command, input=given, capture_output=True, text=True, env=home.environment)
    assert done.returncode == 1
    assert "Msg 50001" in done.stderr
    assert PASSWORD not in done.stderr + done.stdout
    assert os.environ.get("PGPASSWORD") is None
