"""What a batch says: statements as values. Expressions and queries are sqlglot's trees. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from engine.tsql.types import SqlType


@dataclass(frozen=True, slots=True)
class Statement:
    """``line`` and ``column`` of the script, from 1."""

    line: int
    column: int = field(default=1, kw_only=True, compare=False)


Statements = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Declaration:
    """One variable of a DECLARE, in lower case with its @."""

    name: str
    type: SqlType
    initial: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class Declare(Statement):
    """DECLARE @a int, @b int = 1."""

    variables: tuple[Declaration, ...]


@dataclass(frozen=True, slots=True)
class DeclareTable(Statement):
    """DECLARE @t TABLE (…): the definition as CREATE TABLE."""

    name: str
    definition: exp.Create


@dataclass(frozen=True, slots=True)
class Assign(Statement):
    """SET @a = …."""

    name: str
    expression: exp.Expr


@dataclass(frozen=True, slots=True)
class SelectAssign(Statement):
    """SELECT @a = …, @b = … [FROM …]: the query selects the values in order."""

    names: tuple[str, ...]
    query: exp.Select


@dataclass(frozen=True, slots=True)
class SetOption(Statement):
    """SET NOCOUNT ON and the like; the name in upper case."""

    option: str
    value: str


@dataclass(frozen=True, slots=True)
class IdentityInsert(Statement):
    """SET IDENTITY_INSERT table ON or OFF."""

    table: exp.Table
    is_on: bool


@dataclass(frozen=True, slots=True)
class Query(Statement):
    """A SELECT that returns rows."""

    query: exp.Query


@dataclass(frozen=True, slots=True)
class Modify(Statement):
    """INSERT, UPDATE, DELETE, MERGE, and SELECT … INTO."""

    tree: exp.Expr


@dataclass(frozen=True, slots=True)
class Define(Statement):
    """CREATE, ALTER, DROP, TRUNCATE."""

    tree: exp.Expr


@dataclass(frozen=True, slots=True)
class DefineWrapper(Statement):
    """CREATE FUNCTION of a script of sp_cdc_generate_wrapper_function: its whole text."""

    text: str


@dataclass(frozen=True, slots=True)
class DefineFunction(Statement):
    """CREATE FUNCTION that gives a value; its name in lower case, without its schema."""

    name: str
    parameters: tuple[Declaration, ...]
    returns: SqlType
    body: Statements
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Argument:
    """A value given to a procedure. ``name`` in lower case with its @; None as value: DEFAULT."""

    name: str | None
    value: exp.Expr | None
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Execute(Statement):
    """EXEC [@result =] procedure arguments."""

    procedure: tuple[str, ...]
    arguments: tuple[Argument, ...]
    result: str | None = None


@dataclass(frozen=True, slots=True)
class ExecuteText(Statement):
    """EXEC ('…')."""

    text: exp.Expr


@dataclass(frozen=True, slots=True)
class InsertExecute(Statement):
    """INSERT INTO target [(columns)] EXEC …."""

    target: exp.Table
    columns: tuple[str, ...]
    execute: Execute | ExecuteText


@dataclass(frozen=True, slots=True)
class Block(Statement):
    """BEGIN … END."""

    statements: Statements


@dataclass(frozen=True, slots=True)
class If(Statement):
    """IF … [ELSE …]."""

    condition: exp.Expr
    then: Statement
    otherwise: Statement | None = None


@dataclass(frozen=True, slots=True)
class While(Statement):
    """WHILE …."""

    condition: exp.Expr
    body: Statement


@dataclass(frozen=True, slots=True)
class Leave(Statement):
    """BREAK, CONTINUE (``again``)."""

    again: bool


@dataclass(frozen=True, slots=True)
class Return(Statement):
    """RETURN: the batch ends, or a function with a value."""

    value: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class TryCatch(Statement):
    """BEGIN TRY … END TRY BEGIN CATCH … END CATCH."""

    tried: Statements
    caught: Statements


@dataclass(frozen=True, slots=True)
class Throw(Statement):
    """THROW number, text, state; without arguments the caught error again."""

    arguments: tuple[exp.Expr, ...]


@dataclass(frozen=True, slots=True)
class RaiseError(Statement):
    """RAISERROR (text or number, severity, state, values …)."""

    arguments: tuple[exp.Expr, ...]


@dataclass(frozen=True, slots=True)
class Print(Statement):
    """PRINT …."""

    expression: exp.Expr


@dataclass(frozen=True, slots=True)
class WaitFor(Statement):
    """WAITFOR DELAY …."""

    delay: exp.Expr


@dataclass(frozen=True, slots=True)
class Use(Statement):
    """USE database."""

    database: str


@dataclass(frozen=True, slots=True)
class Begin(Statement):
    """BEGIN TRANSACTION."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class Commit(Statement):
    """COMMIT."""


@dataclass(frozen=True, slots=True)
class Rollback(Statement):
    """ROLLBACK [name of a savepoint or of the transaction]."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class Save(Statement):
    """SAVE TRANSACTION name."""

    name: str


@dataclass(frozen=True, slots=True)
class DeclareCursor(Statement):
    """DECLARE name CURSOR … FOR query."""

    name: str
    query: exp.Query
    scrolls: bool


@dataclass(frozen=True, slots=True)
class CursorStep(Statement):
    """OPEN, CLOSE, DEALLOCATE."""

    action: str
    name: str


@dataclass(frozen=True, slots=True)
class Fetch(Statement):
    """FETCH [direction [place]] FROM name [INTO variables]."""

    name: str
    direction: str
    place: exp.Expr | None
    into: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Impersonate(Statement):
    """EXECUTE AS USER = '…'; None: REVERT."""

    user: exp.Expr | None


@dataclass(frozen=True, slots=True)
class ChangePrincipal(Statement):
    """CREATE, ALTER, DROP of USER and ROLE; ``other``: a role's member, or a database's new owner."""

    action: str
    name: str
    other: str | None = None


@dataclass(frozen=True, slots=True)
class Nothing(Statement):
    """A statement that has nothing to do here, such as RECONFIGURE."""
