"""What the source and Spark say of a statement, as T-SQL says it. Pure.

Their own words are shown (50042) only where the original has no error for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from engine.sources.sql_session import StatementRefused
from engine.tsql.messages import Message, SqlError, sql_error

_OWN_WORDS = re.compile(r"Msg (\d+), Level (\d+), State (\d+): (.*)", re.DOTALL)
_DENIED = ("42501", "25006")
"""SQLSTATE of a missing right, and of a change by someone who only reads."""
_TYPES: Mapping[str, str] = {
    "integer": "int",
    "boolean": "bit",
    "character varying": "varchar",
    "character": "char",
    "text": "nvarchar(max)",
    "double precision": "float",
    "timestamp without time zone": "datetime2",
    "timestamp with time zone": "datetimeoffset",
    "time without time zone": "time",
    "bytea": "varbinary",
    "uuid": "uniqueidentifier",
    "string": "nvarchar",
    "double": "float",
    "timestamp": "datetime2",
    "timestamp_ntz": "datetime2",
    "binary": "varbinary",
}
_MOMENTS = frozenset({"date", "time", "datetime2", "datetimeoffset"})
_APPROXIMATE = frozenset({"numeric", "decimal", "float", "real"})
_OPERATORS: Mapping[str, str] = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "modulo", "||": "add",
    "=": "equal to", "<>": "not equal to", "<": "less than", ">": "greater than",
    "<=": "less than or equal to", ">=": "greater than or equal to",
}  # fmt: skip


def type_said(name: str) -> str:
    """T-SQL's name of a type of PostgreSQL or Spark, whatever its length."""
    plain = re.sub(r"\(.*?\)", "", name.strip().lower()).strip()
    return _TYPES.get(plain, plain)


def of_source(error: StatementRefused, database: str) -> SqlError:
    """What the source said of a statement in that database."""
    if own := _OWN_WORDS.fullmatch(error.text):
        number, severity, state = (int(own[place]) for place in (1, 2, 3))
        return SqlError(Message(number, severity, state, own[4], 0))
    if error.sqlstate in _DENIED:
        text = f"The permission was denied at the source, database '{database}': {error.text}."
        return SqlError(Message(229, 14, 5, text, 0))
    if error.sqlstate in ("23503", "23514"):
        return _conflict(error, database)
    known = _SOURCE.get(error.sqlstate)
    found = None if known is None else known(error)
    return found or sql_error(50042, "The source database", _with_detail(error))


def of_spark(condition: str, subject: str, text: str) -> SqlError:
    """What Spark said: its error condition, the name that it speaks of, and its first line."""
    for beginning, said in _SPARK.items():
        if condition.startswith(beginning) and (found := said(subject, text)) is not None:
            return found
    plain = re.sub(r"^\[[A-Z_.0-9]+\] |\s*SQLSTATE: \w+.*$", "", text)
    return sql_error(50042, "Spark", plain)


# The source


def _with_detail(error: StatementRefused) -> str:
    return f"{error.text}. {error.detail}".strip() if error.detail else f"{error.text}."


def _quoted_in(text: str) -> str:
    found = re.search(r'"(.+?)"', text)
    return found[1] if found else text


def _object(error: StatementRefused) -> str:
    return f"{error.schema}.{error.table}" if error.schema else error.table


def _key(detail: str) -> tuple[str, str]:
    """Columns and values of ``Key (a, b)=(1, 2) …``."""
    found = re.match(r"Key \((.*?)\)=\((.*)\) ", detail, re.DOTALL)
    return (found[1].replace('"', ""), found[2]) if found else ("", "")


def _duplicate(error: StatementRefused) -> SqlError:
    name = error.constraint
    kind = "PRIMARY KEY" if name.lower().startswith("pk") or name.lower().endswith("_pkey") else "UNIQUE KEY"
    return sql_error(2627, kind, name, _object(error), _key(error.detail)[1])


def _conflict(error: StatementRefused, database: str) -> SqlError:
    """A foreign key from either side, or a check."""
    if error.sqlstate == "23514":
        return sql_error(547, "CHECK", error.constraint, database, _object(error), "")
    is_referenced = "is still referenced" in error.detail
    named = re.search(r'in table "(.*)"\.$', error.detail)
    table = _object(error) if is_referenced or named is None else named[1]
    column, _ = _key(error.detail)
    kind = "REFERENCE" if is_referenced else "FOREIGN KEY"
    return sql_error(547, kind, error.constraint, database, table, f", column '{column}'" if column else "")


def _invalid_text(error: StatementRefused) -> SqlError | None:
    found = re.match(r'invalid input (?:syntax|value) for (?:type )?(.+?): "(.*)"$', error.text, re.DOTALL)
    return _not_converted("varchar", found[2], type_said(found[1])) if found else None


def _not_converted(source: str, value: str, target: str) -> SqlError:
    """The original has an error for each kind of target."""
    if target in _MOMENTS:
        return sql_error(241)
    if target == "uniqueidentifier":
        return sql_error(8169)
    if target in _APPROXIMATE:
        return sql_error(8114, source, target)
    return sql_error(245, source, value, target)


def _no_operator(error: StatementRefused) -> SqlError | None:
    found = re.match(r"operator does not exist: (\S.*?) (\S{1,2}) (\S.*)$", error.text)
    if found:
        one, other = type_said(found[1]), type_said(found[3])
        return sql_error(402, one, other, _OPERATORS.get(found[2], found[2]))
    if found := re.match(r"function (?:\w+\.)?(\w+)\((.*)\) does not exist$", error.text):
        types = ", ".join(type_said(each) for each in found[2].split(","))
        return sql_error(8117, types, found[1])
    return None


def _clash(error: StatementRefused) -> SqlError | None:
    shapes = (
        r"column \".*\" is of type (?P<to>.+) but expression is of type (?P<one>.+)$",
        r"\S+ types (?P<one>.+) and (?P<to>.+) cannot be matched$",
        r"\S+ could not convert type (?P<one>.+) to (?P<to>.+)$",
        r"argument of .+ must be type (?P<to>.+), not type (?P<one>.+)$",
    )
    for shape in shapes:
        if found := re.match(shape, error.text):
            return sql_error(206, type_said(found["one"]), type_said(found["to"]))
    return None


def _no_cast(text: str) -> SqlError | None:
    found = re.match(r"cannot cast type (.+) to (.+)$", text)
    return sql_error(529, type_said(found[1]), type_said(found[2])) if found else None


def _not_grouped(error: StatementRefused) -> SqlError | None:
    found = re.search(r'column "(.+?)" must appear in the GROUP BY clause', error.text)
    return sql_error(8120, found[1]) if found else None


def _wrong_count(error: StatementRefused) -> SqlError | None:
    if "must have the same number of columns" in error.text:
        return sql_error(205)
    if "INSERT has more" in error.text:
        return sql_error(213)
    return None


def _whole_type(text: str) -> str:
    """``value too long for type character varying(20)`` as the type and its length."""
    found = re.search(r"type (.+?)(\(\d+\))?$", text)
    return f"{type_said(found[1])}{found[2] or ''}" if found else text


_SOURCE: Mapping[str, Callable[[StatementRefused], SqlError | None]] = {
    "23505": _duplicate,
    "23502": lambda e: sql_error(515, e.column, e.table),
    "22012": lambda e: sql_error(8134),
    "42P01": lambda e: sql_error(208, _quoted_in(e.text)),
    "3F000": lambda e: sql_error(208, _quoted_in(e.text)),
    "42703": lambda e: sql_error(207, _quoted_in(e.text)),
    "42702": lambda e: sql_error(209, _quoted_in(e.text)),
    "42701": lambda e: sql_error(
        2705, e.table or re.sub(r'.*relation "(.+?)".*', r"\1", e.text), _quoted_in(e.text)
    ),
    "42P07": lambda e: sql_error(2714, _quoted_in(e.text)),
    "42710": lambda e: sql_error(15023, _quoted_in(e.text)),
    "42704": lambda e: sql_error(15151, "find", "principal or object", _quoted_in(e.text)),
    "42P06": lambda e: sql_error(2714, _quoted_in(e.text)),
    "22001": lambda e: sql_error(2628, _whole_type(e.text)),
    "22003": lambda e: sql_error(8115, "expression", "the column's type"),
    "22007": lambda e: sql_error(241),
    "22008": lambda e: sql_error(241),
    "22P02": _invalid_text,
    "21000": lambda e: sql_error(8672 if "MERGE" in e.text else 512),
    "40P01": lambda e: sql_error(1205, e.text),
    "40001": lambda e: sql_error(1205, e.text),
    "42883": _no_operator,
    "42804": _clash,
    "42846": lambda e: _no_cast(e.text),
    "42803": _not_grouped,
    "42601": _wrong_count,
    "428C9": lambda e: sql_error(544, e.table or "the table") if "GENERATED ALWAYS" in e.detail else None,
    "2BP01": lambda e: sql_error(3726, _quoted_in(e.text)) if "table" in e.text else None,
}


# Spark


def _cast_failed(subject: str, text: str) -> SqlError | None:
    found = re.search(r'The value (.*) of the type "(.+?)" cannot be cast to "(.+?)"', text, re.DOTALL)
    if found is None:
        return None
    return _not_converted(type_said(found[2]), found[1].strip("'"), type_said(found[3]))


def _cast_refused(subject: str, text: str) -> SqlError | None:
    found = re.search(r'cannot cast "(.+?)" to "(.+?)"', text)
    return sql_error(529, type_said(found[1]), type_said(found[2])) if found else None


def _operands(subject: str, text: str) -> SqlError | None:
    found = re.search(r'\("(.+?)" and "(.+?)"\)', text)
    return sql_error(206, type_said(found[1]), type_said(found[2])) if found else None


def _missing_table(subject: str, text: str) -> SqlError | None:
    found = re.search(r"Cannot resolve `?(.+?)`?\.\*", text)
    return sql_error(107, found[1]) if found else None


def _aggregated(text: str) -> str:
    found = re.search(r'expression "(.+?)"', text)
    return found[1] if found else ""


_SPARK: Mapping[str, Callable[[str, str], SqlError | None]] = {
    "UNRESOLVED_COLUMN": lambda subject, _: sql_error(207, subject.rpartition("`.`")[2].strip("`")),
    "AMBIGUOUS_REFERENCE": lambda subject, _: sql_error(209, subject),
    "DIVIDE_BY_ZERO": lambda *_: sql_error(8134),
    "REMAINDER_BY_ZERO": lambda *_: sql_error(8134),
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": lambda *_: sql_error(512),
    "CAST_INVALID_INPUT": _cast_failed,
    "DATATYPE_MISMATCH.CAST": _cast_refused,
    "DATATYPE_MISMATCH": _operands,
    "NUM_COLUMNS_MISMATCH": lambda *_: sql_error(205),
    "MISSING_GROUP_BY": lambda subject, _: sql_error(8120, subject),
    "MISSING_AGGREGATION": lambda subject, text: sql_error(8120, _aggregated(text) or subject),
    "CANNOT_RESOLVE_STAR_EXPAND": _missing_table,
    "ARITHMETIC_OVERFLOW": lambda *_: sql_error(8115, "expression", "that of the result"),
    "NUMERIC_VALUE_OUT_OF_RANGE": lambda *_: sql_error(8115, "expression", "that of the result"),
    "CAST_OVERFLOW": lambda *_: sql_error(8115, "expression", "that of the result"),
    "CANNOT_PARSE_TIMESTAMP": lambda *_: sql_error(241),
}
