"""Errors of the language itself with the original's numbers (sys.messages); CDC's are in `engine.errors`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.errors import CdcError

INFORMATION = 10
"""Up to this severity a message is no failure."""
UNSUPPORTED = 50040
"""Number of what is not understood."""
USER_ERROR = 50000
"""Number of RAISERROR with a text of its own."""

_USUAL = (16, 1)

_MESSAGES: Mapping[int, tuple[tuple[int, int], str]] = {
    102: ((15, 1), "Incorrect syntax near '{0}'."),
    105: ((15, 1), "Unclosed quotation mark after the character string '{0}'."),
    107: (
        (15, 1),
        "The column prefix '{0}' does not match with a table name or alias name used in the query.",
    ),
    111: ((15, 1), "'{0}' must be the first statement in a query batch."),
    119: (
        (15, 1),
        "Must pass parameter number {0} and subsequent parameters as '@name = value'. After the form "
        "'@name = value' has been used, all subsequent parameters must be passed in the "
        "form '@name = value'.",
    ),
    134: (
        (15, 2),
        "The variable name '{0}' has already been declared. Variable names must be unique within a batch.",
    ),
    135: ((15, 1), "Cannot use a {0} statement outside the scope of a WHILE statement."),
    137: ((15, 2), 'Must declare the scalar variable "{0}".'),
    141: (
        (15, 1),
        "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval "
        "operations.",
    ),
    155: ((15, 2), "'{0}' is not a recognized {1} option."),
    148: ((15, 1), "Incorrect time syntax in time string '{0}' used with WAITFOR."),
    174: ((15, 1), "The {0} function requires {1} argument(s)."),
    195: ((15, 10), "'{0}' is not a recognized built-in function name{1}."),
    201: ((16, 4), "Procedure or function '{0}' expects parameter '{1}', which was not supplied."),
    205: (
        _USUAL,
        "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of "
        "expressions in their target lists.",
    ),
    206: ((16, 2), "Operand type clash: {0} is incompatible with {1}."),
    207: (_USUAL, "Invalid column name '{0}'."),
    208: (_USUAL, "Invalid object name '{0}'."),
    209: (_USUAL, "Ambiguous column name '{0}'."),
    213: (_USUAL, "Column name or number of supplied values does not match table definition."),
    217: (_USUAL, "Maximum nesting level of dynamic statements exceeded (limit 32)."),
    220: ((16, 2), "Arithmetic overflow error for data type {0}, value = {1}."),
    226: ((16, 6), "{0} statement not allowed within multi-statement transaction."),
    229: ((14, 5), "The {0} permission was denied on the object '{1}', database '{2}', schema '{3}'."),
    232: ((16, 1), "Arithmetic overflow error for type {0}, value = {1}."),
    241: (_USUAL, "Conversion failed when converting date and/or time from character string."),
    245: (_USUAL, "Conversion failed when converting the {0} value '{1}' to data type {2}."),
    262: ((14, 1), "{0} permission denied in database '{1}'."),
    266: (
        (16, 2),
        "Transaction count after EXECUTE indicates a mismatching number of BEGIN and COMMIT statements.",
    ),
    313: ((16, 3), "An insufficient number of arguments were supplied for the procedure or function {0} ..."),
    402: (_USUAL, "The data types {0} and {1} are incompatible in the {2} operator."),
    403: (_USUAL, "Invalid operator for data type. Operator equals {0}, type equals {1}."),
    512: (
        _USUAL,
        "Subquery returned more than 1 value. This is not permitted when the subquery is "
        "used as an expression.",
    ),
    515: (
        (16, 2),
        "Cannot insert the value NULL into column '{0}', table '{1}'; column does not allow nulls.",
    ),
    517: (_USUAL, "Adding a value to a '{0}' column caused an overflow."),
    529: ((16, 2), "Explicit conversion from data type {0} to {1} is not allowed."),
    535: (
        (16, 0),
        "The {0} function resulted in an overflow. The number of dateparts separating "
        "two date/time instances "
        "is too large. Try to use {0} with a less precise datepart.",
    ),
    536: ((16, 1), "Invalid length parameter passed to the {0} function."),
    544: (
        _USUAL,
        "Cannot insert explicit value for identity column in table '{0}' when IDENTITY_INSERT is set to OFF.",
    ),
    547: (
        (16, 0),
        'The statement conflicted with the {0} constraint "{1}". The conflict occurred in database "{2}", '
        'table "{3}"{4}.',
    ),
    628: (_USUAL, "Cannot issue SAVE TRANSACTION when there is no active transaction."),
    911: (_USUAL, "Database '{0}' does not exist. {1}"),
    1038: (
        (15, 5),
        "An object or column name is missing or empty. For SELECT INTO statements, verify each column has a "
        "name.",
    ),
    1062: (
        (15, 1),
        "The TOP N WITH TIES clause is not allowed without a corresponding ORDER BY clause.",
    ),
    1087: ((15, 2), 'Must declare the table variable "{0}".'),
    1205: ((13, 51), "The transaction was deadlocked on lock resources with another process: {0} Rerun it."),
    2627: (
        (14, 1),
        "Violation of {0} constraint '{1}'. Cannot insert duplicate key in object '{2}'. "
        "The duplicate key value is ({3}).",
    ),
    2628: (_USUAL, "String or binary data would be truncated: the value is too long for {0}."),
    2705: (
        (16, 4),
        "Column names in each table must be unique. Column name '{1}' in table '{0}' is specified more "
        "than once.",
    ),
    2714: ((16, 6), "There is already an object named '{0}' in the database."),
    2732: (
        _USUAL,
        "Error number {0} is invalid. The number must be from 13000 through 2147483647 "
        "and it cannot be 50000.",
    ),
    2754: (
        _USUAL,
        "Error severity levels greater than 18 can only be specified by members of the sysadmin role.",
    ),
    2786: (
        _USUAL,
        "The data type of a substitution parameter does not match the expected type of "
        "the format specification '%{0}'.",
    ),
    2787: (_USUAL, "Invalid format specification: '{0}'."),
    2812: ((16, 62), "Could not find stored procedure '{0}'."),
    3609: ((16, 1), "The transaction ended in the trigger. The batch has been aborted."),
    3701: ((11, 5), "Cannot drop the object '{0}', because it does not exist or you do not have permission."),
    3726: (_USUAL, "Could not drop object '{0}' because it is referenced by another object."),
    3902: (_USUAL, "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION."),
    3903: (_USUAL, "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION."),
    3930: (
        _USUAL,
        "The current transaction cannot be committed and cannot support operations that "
        "write to the log file. "
        "Roll back the transaction.",
    ),
    3998: (
        _USUAL,
        "Uncommittable transaction is detected at the end of the batch. The transaction is rolled back.",
    ),
    4104: (_USUAL, 'The multi-part identifier "{0}" could not be bound.'),
    4121: (
        _USUAL,
        'Cannot find either column "dbo" or the user-defined function or aggregate "dbo.{0}", or the name is '
        "ambiguous.",
    ),
    6401: (_USUAL, "Cannot roll back {0}. No transaction or savepoint of that name was found."),
    8106: (_USUAL, "Table '{0}' does not have the identity property. Cannot perform SET operation."),
    8114: ((16, 5), "Error converting data type {0} to {1}."),
    8115: ((16, 2), "Arithmetic overflow error converting {0} to data type {1}."),
    8117: (_USUAL, "Operand data type {0} is invalid for {1} operator."),
    8120: (
        _USUAL,
        "Column '{0}' is invalid in the select list because it is not contained in either an aggregate "
        "function or the GROUP BY clause.",
    ),
    8134: (_USUAL, "Divide by zero error encountered."),
    8144: ((16, 2), "Procedure or function {0} has too many arguments specified."),
    8145: ((16, 2), "{1} is not a parameter for procedure {0}."),
    8143: ((16, 1), "Parameter '{0}' was supplied multiple times."),
    8154: (_USUAL, "The table '{0}' is ambiguous."),
    8155: ((16, 2), "No column name was specified for column {0} of '{1}'."),
    8156: ((16, 1), "The column '{0}' was specified multiple times for '{1}'."),
    8162: (
        (16, 2),
        "The formal parameter '{0}' was not declared as an OUTPUT parameter, but the "
        "actual parameter passed in "
        "requested output.",
    ),
    8169: ((16, 2), "Conversion failed when converting from a character string to uniqueidentifier."),
    8178: (
        _USUAL,
        "The parameterized query expects the parameter '{0}', which was not supplied.",
    ),
    8672: (
        _USUAL,
        "The MERGE statement attempted to UPDATE or DELETE the same row more than once. This happens when a "
        "target row matches more than one source row. A MERGE statement cannot UPDATE/DELETE the same row of "
        "the target table multiple times. Refine the ON clause to ensure a target row matches at most one "
        "source row, or use the GROUP BY clause to group the source rows.",
    ),
    10704: ((15, 1), "To rethrow an error, a THROW statement must be used inside a CATCH block."),
    14262: (_USUAL, "The specified {0} ('{1}') does not exist."),
    14607: ((16, 1), "The procedure takes no argument of that kind: {0}"),
    15023: (_USUAL, "User, group, or role '{0}' already exists in the current database."),
    15123: (_USUAL, "The configuration option '{0}' does not exist, or it may be an advanced option."),
    15151: (_USUAL, "Cannot {0} the {1} '{2}', because it does not exist or you do not have permission."),
    15517: (
        _USUAL,
        'Cannot execute as the database principal because the principal "{0}" does not exist, this type of '
        "principal cannot be impersonated, or you do not have permission.",
    ),
    16915: (_USUAL, "A cursor with the name '{0}' already exists."),
    16905: (_USUAL, "The cursor is already open."),
    16911: (_USUAL, "fetch: The fetch type {0} cannot be used with forward only cursors."),
    16916: (_USUAL, "A cursor with the name '{0}' does not exist."),
    16917: (_USUAL, "Cursor is not open."),
    16924: (
        _USUAL,
        "Cursorfetch: The number of variables declared in the INTO list must match that of selected columns.",
    ),
    # Ours.
    18054: (
        _USUAL,
        "Error {0}, severity {1}, state {2} was raised, but no message with that error number was found in "
        "sys.messages.",
    ),
    35100: (
        (16, 10),
        "Error number {0} in the THROW statement is outside the valid range. Specify an "
        "error number in the valid "
        "range of 50000 to 2147483647.",
    ),
    50040: ((15, 1), "{0} is not supported here. {1}"),
    50041: (_USUAL, "The name '{0}' is ambiguous without regard to case: {1}. Write it exactly."),
    50042: (_USUAL, "{0} refused the statement: {1}"),
}

BATCH_ABORTING = frozenset(
    {107, 205, 206, 207, 208, 241, 245, 529, 1205, 8114, 8117, 8120, 8169, 50001, 50004, 50011, 50014, 50042}
)
"""Errors that end the batch, as a failed compilation or conversion does; others end a statement."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it is shown: number 0 for PRINT."""

    number: int
    severity: int
    state: int
    text: str
    line: int = 1
    procedure: str | None = None


class SqlError(Exception):
    """An error that a statement raised: what ERROR_NUMBER() and its siblings tell of it."""

    def __init__(self, message: Message, aborts_batch: bool | None = None, keeps_transaction: bool = False):
        super().__init__(message.text)
        self.message = message
        self.aborts_batch = message.number in BATCH_ABORTING if aborts_batch is None else aborts_batch
        self.keeps_transaction = keeps_transaction
        """RAISERROR leaves the transaction alone even under XACT_ABORT."""
        self.place: tuple[int, int] | None = None
        """Line and column of what is refused, where they are known."""

    def at(self, line: int) -> SqlError:
        """The same error where no line was known before."""
        known = self.message
        if known.line:
            return self
        message = Message(known.number, known.severity, known.state, known.text, line, known.procedure)
        return SqlError(message, self.aborts_batch, self.keeps_transaction)


class SyntaxProblem(SqlError):  # noqa: N818 - says what is wrong
    """The batch cannot be run: it is not T-SQL, or uses what is not supported. Nothing of it has run."""


def sql_error(number: int, *values: object, line: int = 0) -> SqlError:
    """An error by its number; line 0: that of the statement that is running."""
    (severity, state), shape = _MESSAGES[number]
    return SqlError(Message(number, severity, state, shape.format(*values), line))


def syntax_problem(number: int, *values: object, line: int, column: int | None = None) -> SyntaxProblem:
    """An error that is found before anything runs; its column stands behind the original's words."""
    message = sql_error(number, *values, line=line).message
    if column is not None:
        message = replace(message, text=f"{message.text} Line {line}, column {column}.")
    return SyntaxProblem(message, True)


def unsupported(what: str, instead: str, line: int, column: int) -> SyntaxProblem:
    """What is not understood, with its place and what is supported."""
    place = f"Line {line}, column {column}: {what}"
    return syntax_problem(50040, place, instead, line=line)


def from_engine(error: CdcError, procedure: str | None = None) -> SqlError:
    """An error of the engine as a statement raises it."""
    return SqlError(Message(error.number, error.severity, error.state, str(error), 0, procedure))
