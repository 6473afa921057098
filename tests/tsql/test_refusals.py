"""What PostgreSQL and Spark say, as T-SQL says it."""

from __future__ import annotations

import pytest

from engine.sources.sql_session import StatementRefused
from engine.tsql.refusals import of_source, of_spark


@pytest.mark.parametrize(
    ("refusal", "number", "text"),
    [
        (
            StatementRefused(
                "23505", "duplicate …", "Key (id)=(1) already exists.", "Orders", "", "dbo", "Orders_pkey"
            ),
            2627,
            "Violation of PRIMARY KEY constraint 'Orders_pkey'. Cannot insert duplicate key in object "
            "'dbo.Orders'. The duplicate key value is (1).",
        ),
        (
            StatementRefused(
                "23503",
                'insert or update on table "Orders" violates …',
                'Key ("CustomerID")=(9) is not present in table "Customers".',
                "Orders",
                "",
                "dbo",
                "FK_Orders",
            ),
            547,
            'The statement conflicted with the FOREIGN KEY constraint "FK_Orders". The conflict occurred in '
            'database "shop", table "Customers", column \'CustomerID\'.',
        ),
        (
            StatementRefused("23514", "new row …", "", "Orders", "", "dbo", "CK_Amount"),
            547,
            'The statement conflicted with the CHECK constraint "CK_Amount". The conflict occurred in '
            'database "shop", table "dbo.Orders".',
        ),
        (
            StatementRefused("22P02", 'invalid input syntax for type integer: "new"'),
            245,
            "Conversion failed when converting the varchar value 'new' to data type int.",
        ),
        (
            StatementRefused("22P02", 'invalid input syntax for type numeric: "new"'),
            8114,
            "Error converting data type varchar to numeric.",
        ),
        (
            StatementRefused("22001", "value too long for type character varying(20)"),
            2628,
            "String or binary data would be truncated: the value is too long for varchar(20).",
        ),
        (
            StatementRefused("42803", 'column "Orders.Status" must appear in the GROUP BY clause or be …'),
            8120,
            "Column 'Orders.Status' is invalid in the select list because it is not contained in either an "
            "aggregate function or the GROUP BY clause.",
        ),
        (
            StatementRefused("42883", "operator does not exist: character varying + integer"),
            402,
            "The data types varchar and int are incompatible in the add operator.",
        ),
        (
            StatementRefused("42883", "function sum(character varying) does not exist"),
            8117,
            "Operand data type varchar is invalid for sum operator.",
        ),
        (
            StatementRefused("42804", "UNION types integer and character varying cannot be matched"),
            206,
            "Operand type clash: int is incompatible with varchar.",
        ),
        (
            StatementRefused("0A000", "cannot do that", "It is not there."),
            50042,
            "The source database refused the statement: cannot do that. It is not there.",
        ),
    ],
)
def test_words_of_the_source(refusal: StatementRefused, number: int, text: str) -> None:
    message = of_source(refusal, "shop").message
    assert (message.number, message.text) == (number, text)


@pytest.mark.parametrize(
    ("condition", "subject", "said", "number", "text"),
    [
        (
            "CAST_INVALID_INPUT",
            "try_cast",
            '[CAST_INVALID_INPUT] The value \'new\' of the type "STRING" cannot be cast to "INT" because …',
            245,
            "Conversion failed when converting the nvarchar value 'new' to data type int.",
        ),
        (
            "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION",
            "",
            'Cannot resolve "CAST(a AS BIGINT)" due to data type mismatch: cannot cast "BINARY" to "BIGINT".',
            529,
            "Explicit conversion from data type varbinary to bigint is not allowed.",
        ),
        (
            "MISSING_GROUP_BY",
            "Status",
            "[MISSING_GROUP_BY] The query does not include a GROUP BY clause. …",
            8120,
            "Column 'Status' is invalid in the select list because it is not contained in either an "
            "aggregate function or the GROUP BY clause.",
        ),
        (
            "CANNOT_RESOLVE_STAR_EXPAND",
            "a",
            "[CANNOT_RESOLVE_STAR_EXPAND] Cannot resolve `a`.* given input columns `b`.",
            107,
            "The column prefix 'a' does not match with a table name or alias name used in the query.",
        ),
        (
            "SOMETHING.ELSE",
            "",
            "[SOMETHING.ELSE] It went wrong. SQLSTATE: 42000; line 1 pos 8",
            50042,
            "Spark refused the statement: It went wrong.",
        ),
    ],
)
def test_words_of_spark(condition: str, subject: str, said: str, number: int, text: str) -> None:
    message = of_spark(condition, subject, said).message
    assert (message.number, message.text) == (number, text)
