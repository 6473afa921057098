"""Sessions at a real source: what statements, errors and transactions leave. No Spark is needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine.control import ControlDatabase
from engine.engine import Engine
from engine.errors import AgentNotRunning
from engine.lake.tables import Lake
from engine.runtime.home import Home
from engine.sources.registry import Sources
from engine.sources.sql_session import StatementRefused
from engine.tsql.batches import batches
from engine.tsql.interpreter import Interpreter
from engine.tsql.output import JsonSink
from tests.tsql.consoles import Outcome, held_while_written


def no_spark() -> Any:
    raise AgentNotRunning("queries need it")


class Session:
    """An interpreter and what it printed."""

    def __init__(self, engine: Engine, principal: str | None = None) -> None:
        self._text = ""
        self.slept: list[float] = []
        self.is_interrupted = False
        """Whether somebody types Ctrl-C as soon as rows come."""
        self.interpreter = Interpreter(
            engine, "shop", JsonSink(self._write), principal, sleep=self.slept.append
        )

    def _write(self, text: str) -> None:
        if self.is_interrupted and "resultset" in text:
            raise KeyboardInterrupt
        self._text += text

    def run(self, script: str) -> Outcome:
        self._text, self.interpreter.failed = "", False
        for batch in batches(script):
            self.interpreter.run(batch)
        lines = [json.loads(line) for line in self._text.splitlines()]
        return Outcome(int(self.interpreter.failed), lines)


@pytest.fixture
def engine(control_dsn: str, source_dsn: str, tmp_path: Path) -> Iterator[Engine]:
    control = ControlDatabase.open(control_dsn)
    control.migrate()
    home = Home(tmp_path / "home")
    home.prepare()
    engine = Engine(control, Sources(home.secret), Lake(str(tmp_path / "lake")), no_spark, home)
    engine.connect("shop", source_dsn)
    yield engine
    engine.close()


@pytest.fixture
def new_session(engine: Engine) -> Iterator[Callable[..., Session]]:
    made: list[Session] = []

    def make(principal: str | None = None) -> Session:
        made.append(Session(engine, principal))
        return made[-1]

    yield make
    for session in made:
        session.interpreter.close()


@pytest.fixture
def session(new_session: Callable[..., Session]) -> Session:
    """A session in a database with dbo.T (ID, Name, Flag), two rows."""
    session = new_session()
    outcome = session.run(
        "CREATE TABLE T (ID int PRIMARY KEY, Name nvarchar(20) NOT NULL, Flag bit DEFAULT 1)"
        " INSERT T VALUES (1, 'a', 1), (2, 'b', 0)"
    )
    assert outcome.errors == []
    return session


def test_dbo_comes_with_its_first_table(session: Session, source_dsn: str) -> None:
    with psycopg.connect(source_dsn) as connection:
        assert connection.execute('SELECT "ID", "Flag" FROM dbo."T" ORDER BY 1').fetchall() == [
            (1, True),
            (2, False),
        ]


def test_names_are_found_without_regard_to_case(session: Session) -> None:
    outcome = session.run("SELECT id, NAME FROM DBO.t WHERE FLAG = 1")
    assert (outcome.names, outcome.rows) == (["ID", "Name"], [[1, "a"]])


def test_an_error_ends_its_statement_and_the_batch_goes_on(session: Session) -> None:
    outcome = session.run(
        "INSERT T (id, name) VALUES (1, 'again') PRINT @@ERROR INSERT T (id) VALUES (3)"
        " SELECT 1/0 SELECT 4 AS n"
    )
    assert outcome.errors == [2627, 515, 8134]
    assert outcome.texts == ["2627"]
    assert outcome.rows == [[4]]


@pytest.mark.parametrize("statement", ["SELECT * FROM gone", "SELECT CAST('x' AS int)", "SELECT gone FROM T"])
def test_some_errors_end_the_batch_and_the_next_one_runs(session: Session, statement: str) -> None:
    outcome = session.run(f"PRINT 'before' {statement} PRINT 'after'\nGO\nPRINT 'next'")
    assert len(outcome.errors) == 1
    assert outcome.texts == ["before", "next"]


def test_nothing_of_a_batch_runs_that_is_wrong_at_its_end(session: Session) -> None:
    outcome = session.run("DELETE T\nSELECT @x\nGO\nSELECT COUNT(*) FROM T")
    assert [(line["number"], line["line"]) for line in outcome.of("error")] == [(137, 2)]
    assert outcome.value == 2


def test_a_statement_that_fails_in_a_transaction_is_taken_back_alone(session: Session) -> None:
    outcome = session.run(
        "BEGIN TRAN INSERT T (id, name) VALUES (3, 'c') INSERT T (id, name) VALUES (4, 'd'), (3, 'c')"
        " SELECT @@TRANCOUNT, COUNT(*) FROM T COMMIT SELECT @@TRANCOUNT, COUNT(*) FROM T"
    )
    assert outcome.errors == [2627]
    assert outcome.rows == [[1, 3], [0, 3]]


def test_transactions_nest_and_savepoints_are_gone_back_to(session: Session) -> None:
    outcome = session.run(
        "BEGIN TRAN BEGIN TRAN SAVE TRAN s DELETE T ROLLBACK TRAN s SELECT COUNT(*), @@TRANCOUNT FROM T"
        " COMMIT SELECT @@TRANCOUNT ROLLBACK SELECT @@TRANCOUNT"
    )
    assert outcome.rows == [[2, 2], [1], [0]]
    assert session.run("COMMIT ROLLBACK SAVE TRAN x").errors == [3902, 3903, 628]
    assert session.run("BEGIN TRAN a ROLLBACK TRAN b ROLLBACK TRAN a SELECT @@TRANCOUNT").errors == [6401]


def test_xact_abort_rolls_back_and_ends_the_batch(session: Session) -> None:
    outcome = session.run(
        "SET XACT_ABORT ON BEGIN TRAN DELETE T WHERE id = 2 INSERT T (id, name) VALUES (1, 'x')"
        " PRINT 'after'\nGO\n"
        "SELECT @@TRANCOUNT, COUNT(*) FROM T"
    )
    assert (outcome.errors, outcome.texts, outcome.rows) == ([2627], [], [[0, 2]])


def test_xact_abort_leaves_a_caught_transaction_fit_only_for_rollback(session: Session) -> None:
    outcome = session.run(
        "SET XACT_ABORT ON BEGIN TRY BEGIN TRAN DELETE T INSERT T (id) VALUES (1) END TRY"
        " BEGIN CATCH SELECT ERROR_NUMBER(), XACT_STATE(), ERROR_LINE()"
        " BEGIN TRY COMMIT END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH"
        " ROLLBACK SELECT XACT_STATE(), COUNT(*) FROM T END CATCH"
    )
    assert outcome.errors == []
    assert outcome.rows == [[515, -1, 1], [0, 2]]
    assert outcome.texts == ["3930"]
    left = session.run("BEGIN TRY BEGIN TRAN DELETE T SELECT 1/0 END TRY BEGIN CATCH PRINT 'x' END CATCH")
    assert left.errors == [3998]
    assert session.run("SELECT @@TRANCOUNT, COUNT(*) FROM T").rows == [[0, 2]]


def test_raiserror_leaves_the_transaction_alone(session: Session) -> None:
    outcome = session.run(
        "SET XACT_ABORT ON BEGIN TRAN RAISERROR('%s %d', 16, 2, 'no', 7) SELECT @@TRANCOUNT ROLLBACK"
    )
    assert [(line["number"], line["state"], line["text"]) for line in outcome.of("error")] == [
        (50000, 2, "no 7")
    ]
    assert outcome.value == 1
    assert session.run("RAISERROR('note', 10, 1)").texts == ["note"]


def test_throw_ends_the_batch_and_throws_again(session: Session) -> None:
    outcome = session.run(
        "BEGIN TRY THROW 50001, 'mine', 3 END TRY BEGIN CATCH PRINT ERROR_MESSAGE(); THROW END CATCH"
        " PRINT 'x'"
    )
    assert outcome.texts == ["mine"]
    assert [(line["number"], line["state"]) for line in outcome.of("error")] == [(50001, 3)]


def test_table_variables_outlive_a_rollback_but_not_their_batch(session: Session) -> None:
    outcome = session.run(
        "DECLARE @t TABLE (id int IDENTITY, n nvarchar(30)) INSERT @t (n) VALUES ('it''s'), (NULL)"
        " BEGIN TRAN INSERT @t (n) SELECT name FROM T DELETE T ROLLBACK"
        " SELECT n FROM @t ORDER BY id SELECT COUNT(*) FROM T"
    )
    assert outcome.rows == [["it's"], [None], ["a"], ["b"], [2]]
    assert session.run("DECLARE @t TABLE (x int) SELECT COUNT(*) FROM @t").value == 0


def test_rows_are_accumulated_in_variables(session: Session) -> None:
    outcome = session.run(
        "CREATE TABLE Parts (id int, name nvarchar(20)) INSERT Parts VALUES (1, 'a'), (2, 'b]'), (3, 'c')"
        " DECLARE @all nvarchar(max), @sum int = 0, @last int"
        " SELECT @all = COALESCE(@all + ', ', '') + QUOTENAME(name), @sum += id * 2, @last = id"
        " FROM Parts WHERE name LIKE '[a-c]%' ORDER BY id DESC"
        " PRINT CONCAT(@all, ' ', @sum, ' ', @last, ' ', @@ROWCOUNT)"
        " SELECT @sum = @sum + COUNT(*) FROM Parts PRINT @sum"
        " SELECT @sum = @sum + 1 FROM Parts WHERE id > 5 PRINT @sum"
        " SELECT STUFF((SELECT ', ' + name FROM Parts ORDER BY id FOR XML PATH('')), 1, 2, '') AS n"
    )
    assert outcome.texts == ["[c], [b]]], [a] 12 1 3", "15", "15"]
    assert outcome.rows == [["a, b], c"]]


def test_dynamic_sql_has_parameters_and_no_variables_of_its_caller(session: Session) -> None:
    outcome = session.run(
        "DECLARE @n int, @s nvarchar(50) = N'SELECT @b = @a + MAX(id) FROM T'"
        " EXEC sp_executesql @s, N'@a int, @b int OUTPUT', @a = 4, @b = @n OUTPUT SELECT @n"
        " EXEC ('PRINT @n') EXEC ('SELECT FROM') PRINT 'on'"
    )
    assert outcome.rows == [[6]]
    assert outcome.errors == [137, 102]
    assert outcome.texts == ["on"]


def test_a_cursor_walks_over_rows(session: Session) -> None:
    outcome = session.run(
        "DECLARE @n nvarchar(20) DECLARE c SCROLL CURSOR FOR SELECT name FROM T ORDER BY id OPEN c"
        " FETCH NEXT FROM c INTO @n WHILE @@FETCH_STATUS = 0 BEGIN PRINT @n FETCH NEXT FROM c INTO @n END"
        " FETCH FIRST FROM c CLOSE c DEALLOCATE c FETCH NEXT FROM c"
    )
    assert outcome.texts == ["a", "b"]
    assert outcome.rows == [["a"]]
    assert outcome.errors == [16916]


def test_subqueries_in_expressions(session: Session) -> None:
    outcome = session.run(
        "DECLARE @m int = (SELECT MAX(id) FROM T) IF EXISTS (SELECT 1 FROM T WHERE id = @m) PRINT @m"
        " IF 'A' IN (SELECT name FROM T) PRINT 'in' SET @m = (SELECT id FROM T)"
    )
    assert (outcome.texts, outcome.errors) == (["2", "in"], [512])


def test_waiting_and_counting(session: Session) -> None:
    outcome = session.run("SET NOCOUNT ON WAITFOR DELAY '00:01:02.5' UPDATE T SET flag = 0 SELECT @@ROWCOUNT")
    assert session.slept == [62.5]
    assert outcome.value == 2
    assert outcome.of("rowcount") == []


def test_two_sessions_do_not_see_each_other(new_session: Callable[..., Session], session: Session) -> None:
    other = new_session()
    assert session.run("CREATE TABLE #mine (a int) BEGIN TRAN DELETE T").errors == []
    assert other.run("SELECT COUNT(*) FROM T").value == 2
    assert other.run("SELECT * FROM #mine").errors == [208]
    assert other.run("SELECT @@TRANCOUNT").value == 0
    assert session.run("COMMIT").errors == []
    assert other.run("SELECT COUNT(*) FROM T").value == 0


def test_what_is_open_when_a_session_ends_is_rolled_back(
    new_session: Callable[..., Session], session: Session
) -> None:
    other = new_session()
    other.run("BEGIN TRAN DELETE T")
    other.interpreter.close()
    assert session.run("SELECT COUNT(*) FROM T").value == 2


@pytest.mark.parametrize(
    "value", ["o'b; DROP TABLE T --", "\\'; DROP TABLE T --", 'a"b', "[x]]", "%s %(a)s", "$1"]
)
def test_hostile_values_stay_values(session: Session, value: str) -> None:
    literal = value.replace("'", "''")
    outcome = session.run(
        f"DECLARE @v nvarchar(50) = N'{literal}' UPDATE T SET name = @v WHERE id = 1"
        f" SELECT name FROM T WHERE name = N'{literal}' "
        " EXEC sp_executesql N'SELECT @p', N'@p nvarchar(50)', @p = @v"
    )
    assert outcome.rows == [[value], [value]]


def test_hostile_names_stay_names(session: Session) -> None:
    outcome = session.run(
        'CREATE TABLE [a"; DROP TABLE dbo."T"; --] ([x"y] int, []]] nvarchar(5))'
        ' INSERT [a"; DROP TABLE dbo."T"; --] ([x"y], []]]) VALUES (1, \'z\')'
        ' SELECT * FROM [a"; DROP TABLE dbo."T"; --] SELECT COUNT(*) FROM T'
    )
    assert outcome.errors == []
    assert outcome.rows == [[1, "z"], [2]]


def test_change_data_needs_the_agent(session: Session) -> None:
    assert session.run("SELECT * FROM cdc.change_tables").errors == [50004]
    assert session.run("SELECT sys.fn_cdc_get_min_lsn('x')").value == "0x" + "0" * 20


def test_results_have_types(session: Session) -> None:
    outcome = session.run(
        "CREATE TABLE W (a tinyint, b decimal(12,2), c datetime, d varbinary(10), e uniqueidentifier, f date,"
        " g nvarchar(max), h float) INSERT W VALUES (1, 2.5, '2026-01-05 08:00:00.123', 0xAB,"
        " '6F9619FF-8B86-D011-B42D-00C04FC964FF', '2026-01-05', N'é', 1.5) SELECT * FROM W"
    )
    assert list(outcome.types.values()) == [
        "smallint",
        "decimal(12,2)",
        "datetime2(6)",
        "varbinary(max)",
        "uniqueidentifier",
        "date",
        "nvarchar(max)",
        "float",
    ]
    counted = session.run("SELECT COUNT(*) AS n, COUNT_BIG(*) AS b FROM T")
    assert counted.types == {"n": "int", "b": "bigint"}
    [row] = outcome.rows
    assert row[2:6] == [
        "2026-01-05T08:00:00.123000",
        "0xAB",
        "6F9619FF-8B86-D011-B42D-00C04FC964FF",
        "2026-01-05",
    ]


def test_nothing_of_a_batch_runs_whose_end_cannot_be_translated(session: Session) -> None:
    outcome = session.run("DELETE T\n  SELECT TOP 50 PERCENT name FROM T\nGO\nSELECT COUNT(*) FROM T")
    assert outcome.errors == [50040]
    assert outcome.of("error")[0]["text"].startswith("Line 2, column 3: TOP")
    assert outcome.value == 2
    assert session.run("EXEC ('DELETE T SELECT TRY_CAST(name AS int) FROM T')").errors == [50040]
    assert session.run("SELECT COUNT(*) FROM T").value == 2


def test_rows_are_loaded_whatever_the_types_of_their_columns(engine: Engine) -> None:
    source = engine.sql_session("shop")
    source.run("CREATE TABLE public.l (a uuid, b jsonb, c int[], d timestamptz, e bytea, f numeric, g text)")
    key, moment = "6f9619ff-8b86-d011-b42d-00c04fc964ff", datetime(2026, 1, 2, 3, 4, 5, 6)
    row = (key, '{"a": 1}', [1, None], moment, b"\0\xff", "12345678901234567890.5", "\t\\N")
    assert source.load("public.l", iter([row, (None,) * 7])) == 2
    [loaded, nothing] = list(source.query("SELECT * FROM public.l").rows)
    assert (str(loaded[0]), *loaded[1:3]) == row[:3]
    assert (loaded[3].replace(tzinfo=None), loaded[4], str(loaded[5]), loaded[6]) == row[3:]
    assert nothing == (None,) * 7
    with pytest.raises(StatementRefused):
        source.load("public.l", [row, ("no uuid", *row[1:])])
    assert len(list(source.query("SELECT 1 FROM public.l").rows)) == 2
    source.close()


def test_output_shows_rows_before_and_after_or_keeps_them(session: Session) -> None:
    outcome = session.run(
        "DECLARE @log TABLE (what nvarchar(10), id int, was nvarchar(20), [is] nvarchar(20))"
        " UPDATE T SET name = name + '!' OUTPUT deleted.NAME AS was, inserted.name, deleted.* WHERE id = 1"
        " UPDATE t SET name = u.name OUTPUT 'copied', inserted.id, deleted.name, u.name INTO @log"
        " FROM T t JOIN T u ON u.id = 1 WHERE t.id = 2"
        " DELETE T OUTPUT 'deleted', deleted.id, deleted.name INTO @log (what, id, was) WHERE id = 2"
        " MERGE T USING (SELECT 1 AS id UNION ALL SELECT 7) s ON s.id = T.id"
        " WHEN MATCHED THEN UPDATE SET name = 'm' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'n')"
        " OUTPUT $action, s.id, deleted.name, inserted.name INTO @log;"
        " PRINT @@ROWCOUNT SELECT * FROM @log"
    )
    assert outcome.errors == []
    assert [outcome.rows[0], *sorted(outcome.rows[1:], key=lambda row: row[0])] == [
        ["a", "a!", 1, "a", True],
        ["INSERT", 7, None, "n"],
        ["UPDATE", 1, "a!", "m"],
        ["copied", 2, "b", "a!"],
        ["deleted", 2, "a!", None],
    ]
    assert outcome.texts == ["2"]
    twice = "MERGE T USING (VALUES (1), (1)) s (id) ON s.id = T.id WHEN MATCHED THEN UPDATE SET name = 'x';"
    assert session.run(twice).errors == [8672]
    wrong = "INSERT T (id, name) OUTPUT deleted.id VALUES (8, 'x')\nGO\nDELETE T OUTPUT deleted.gone"
    assert session.run(wrong).errors == [4104, 207]


def test_outer_joins_ties_and_computed_columns(session: Session) -> None:
    outcome = session.run(
        "CREATE TABLE S (id int, rank int, twice AS (rank * 2) PERSISTED NOT NULL,"
        " label AS 'no ' + CAST(rank AS varchar(5)), many AS CASE WHEN rank > 1 THEN 1.5 ELSE 0 END)"
        " INSERT S (id, rank) VALUES (1, 1), (5, 1), (6, 2)"
        " SELECT TOP 1 WITH TIES id, twice, label, many FROM S ORDER BY rank"
        " UPDATE T SET name = COALESCE(s.label, 'none') OUTPUT inserted.id, deleted.name, inserted.name"
        " FROM T LEFT JOIN S s ON s.id = T.id WHERE T.id < 9"
        " DELETE s FROM S s LEFT JOIN T t ON t.id = s.id WHERE t.id IS NULL SELECT id FROM S"
        " UPDATE S SET twice = 3"
    )
    assert sorted(outcome.rows[:2]) == [[1, 2, "no 1", 0], [5, 2, "no 1", 0]]
    assert sorted(outcome.rows[2:4]) == [[1, "a", "no 1"], [2, "b", "none"]]
    assert outcome.rows[4:] == [[1]]
    assert outcome.errors == [50042]
    assert session.run("SELECT TOP 1 WITH TIES id FROM T").errors == [1062]


def test_a_script_that_fails_halfway_leaves_what_was_done(session: Session) -> None:
    """Each statement is its own transaction; an error that ends a batch ends no script."""
    outcome = session.run(
        "INSERT T (id, name) VALUES (3, 'c') INSERT T (id, name) VALUES (3, 'again')"
        " INSERT T (id, name) VALUES (4, 'd') SELECT CAST('x' AS int)"
        " INSERT T (id, name) VALUES (5, 'e')\nGO\n"
        "INSERT T (id, name) VALUES (6, 'f')\nGO\nSELECT id FROM T ORDER BY id"
    )
    assert outcome.errors == [2627, 245]
    assert outcome.rows == [[1], [2], [3], [4], [6]]


def test_each_statement_sets_error_and_rowcount_anew(session: Session) -> None:
    outcome = session.run(
        "INSERT T (id, name) VALUES (1, 'x') IF @@ERROR = 2627 PRINT @@ERROR"
        " UPDATE T SET name = name PRINT @@ROWCOUNT PRINT @@ROWCOUNT"
    )
    assert outcome.texts == ["0", "2", "0"]


def test_nested_catch_blocks_see_their_own_error(session: Session) -> None:
    outcome = session.run(
        "BEGIN TRY BEGIN TRY SELECT 1/0 END TRY\n"
        "BEGIN CATCH PRINT ERROR_NUMBER(); THROW 50010, 'outer', 2 END CATCH END TRY\n"
        "BEGIN CATCH PRINT CONCAT(ERROR_NUMBER(), ERROR_MESSAGE(), ERROR_STATE(), ERROR_LINE(),"
        " ERROR_SEVERITY()) END CATCH SELECT ERROR_NUMBER()"
    )
    assert outcome.texts == ["8134", "50010outer2216"]
    assert outcome.value is None


def test_a_transaction_goes_on_over_batches(session: Session) -> None:
    outcome = session.run(
        "BEGIN TRAN DELETE T\nGO\nSELECT @@TRANCOUNT, COUNT(*) FROM T\nGO\nROLLBACK\nGO\n"
        "SELECT COUNT(*) FROM T"
    )
    assert outcome.rows == [[1, 0], [2]]


def test_definitions_as_management_studio_writes_them(session: Session) -> None:
    outcome = session.run(
        """
        CREATE TABLE [dbo].[D](
            [ID] [int] IDENTITY(1,1) NOT NULL,
            [Q] [int] NULL CONSTRAINT [DF_Q] DEFAULT ((5)),
            [At] [datetime2](3) DEFAULT (SYSUTCDATETIME()),
            CONSTRAINT [PK_D] PRIMARY KEY CLUSTERED ([ID] ASC)
                WITH (PAD_INDEX = OFF, IGNORE_DUP_KEY = OFF) ON [PRIMARY],
            CONSTRAINT UQ_D UNIQUE NONCLUSTERED (Q ASC)
        ) ON [PRIMARY] TEXTIMAGE_ON [PRIMARY]
        CREATE NONCLUSTERED INDEX IX_D ON D (At DESC, Q ASC) WITH (FILLFACTOR = 80) ON [PRIMARY]
        ALTER TABLE D ADD CONSTRAINT CK CHECK (Q > 0)
        ALTER TABLE D DROP CONSTRAINT CK
        DROP INDEX IX_D ON dbo.D
        INSERT D DEFAULT VALUES SELECT SCOPE_IDENTITY(), @@IDENTITY
        SET IDENTITY_INSERT dbo.D ON INSERT D (ID, Q) VALUES (77, 9) SET IDENTITY_INSERT dbo.D OFF
        INSERT D (Q) VALUES (-1)
        SELECT ID, Q, IIF(At > '2020-01-01', 1, 0) FROM D ORDER BY ID
        """
    )
    assert outcome.errors == []
    assert outcome.rows == [[1, 1], [1, 5, 1], [77, 9, 1], [78, -1, 1]]
    assert session.run("SET IDENTITY_INSERT T ON").errors == [8106]


def test_scalar_functions_live_as_long_as_the_session(session: Session) -> None:
    outcome = session.run(
        "CREATE FUNCTION dbo.half (@n int, @by int) RETURNS int AS BEGIN"
        " IF @by = 0 RETURN NULL; DECLARE @x int = @n / @by; RETURN @x END\nGO\n"
        "SELECT dbo.half(9, 2), dbo.HALF(1, 0) SELECT name FROM T WHERE id = dbo.half(4, 2)\nGO\n"
        "SELECT dbo.half(1)\nGO\nSELECT dbo.gone(1)\nGO\nDROP FUNCTION dbo.half SELECT dbo.half(1, 1)"
    )
    assert outcome.rows == [[4, None], ["b"]]
    assert outcome.errors == [313, 4121, 4121]
    assert session.run("CREATE FUNCTION f() RETURNS int AS BEGIN DELETE T RETURN 1 END").errors == [50040]


def test_only_the_owner_may_stand_for_others(new_session: Callable[..., Session], session: Session) -> None:
    roles = "DROP ROLE IF EXISTS tsql_member DROP ROLE IF EXISTS tsql_group"
    try:
        outcome = session.run(
            f"{roles} CREATE USER tsql_member WITHOUT LOGIN CREATE ROLE tsql_group"
            " ALTER ROLE tsql_group ADD MEMBER tsql_member CREATE USER tsql_member WITHOUT LOGIN"
            " SELECT IS_ROLEMEMBER('tsql_group', 'tsql_member'), IS_MEMBER('db_owner'), IS_MEMBER('gone')"
            " EXECUTE AS USER = 'tsql_member'"
            " SELECT USER_NAME(), IS_MEMBER('tsql_group'), IS_MEMBER('db_owner')"
            " EXECUTE AS USER = 'dbo' SELECT COUNT(*) FROM T\nGO\n"
            "REVERT EXEC sp_droprolemember 'tsql_group', 'tsql_member'"
            " SELECT IS_ROLEMEMBER('tsql_group', 'tsql_member')"
        )
        assert outcome.errors == [15023, 15517, 229]
        assert outcome.rows == [[1, 1, None], ["tsql_member", 1, 0], [0]]
        member = new_session("tsql_member")
        assert member.run("EXECUTE AS USER = 'dbo' SELECT USER_NAME()").errors == [15517]
        assert member.run("REVERT REVERT SELECT COUNT(*) FROM T").errors == [229]
    finally:
        assert session.run(f"REVERT {roles}").errors == []


def test_ctrl_c_takes_back_its_statement_and_the_transaction_goes_on(session: Session) -> None:
    session.run("BEGIN TRAN DELETE T WHERE id = 1")
    session.is_interrupted = True
    for statement in ("SELECT name FROM T", "DELETE T OUTPUT deleted.id", "SELECT * FROM @t"):
        with pytest.raises(KeyboardInterrupt):
            session.run(f"DECLARE @t TABLE (a int) {statement}")
    session.is_interrupted = False
    outcome = session.run("SELECT @@TRANCOUNT, XACT_STATE(), COUNT(*) FROM T ROLLBACK SELECT COUNT(*) FROM T")
    assert outcome.rows == [[1, 1, 1], [2]]


def test_a_million_rows_take_no_memory_in_any_form(engine: Engine, session: Session) -> None:
    """What the process holds is looked at while rows are written, in the middle and at the end."""
    digits = ", ".join(f"({digit})" for digit in range(10))
    session.run(f"CREATE TABLE N (i int) INSERT N VALUES {digits}")
    query = "SELECT a.i, 'a text of some length' FROM N a " + " ".join(
        f"CROSS JOIN N {name}" for name in "bcdef"
    )
    for held in held_while_written(engine, "shop", query):
        assert len(held) > 500
        assert max(held) - held[0] < 32 << 20
