"""sqlglot's T-SQL, for expressions and queries; control flow is `engine.tsql.parser`'s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.tsql import TSQL
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from engine.tsql.batches import unclosed
from engine.tsql.compound import expanded
from engine.tsql.messages import syntax_problem
from engine.tsql.query_forms import join_texts

# sqlglot takes these for others' functions, or gives up what they say of precision or language.
_OURS = {
    "SYSDATETIME", "DATENAME", "DATEPART", "FORMAT", "HASHBYTES", "SUSER_SNAME", "SUSER_NAME", "SYSTEM_USER",
    "EOMONTH", "SCHEMA_NAME", "YEAR", "MONTH", "DAY", "GREATEST", "LEAST", "ISJSON", "JSON_VALUE", "CHAR",
    "OBJECT_ID", "NEWID", "OBJECT_NAME", "SCHEMA_ID",
}  # fmt: skip


class Dialect(TSQL):
    """T-SQL with every word as a token of its own."""

    class Tokenizer(TSQL.Tokenizer):
        """No statement is swallowed as one text."""

        COMMANDS: ClassVar[set[TokenType]] = set()

    class Parser(TSQL.Parser):  # type: ignore[valid-type, misc]
        """Some functions keep their own names."""

        FUNCTIONS = {name: make for name, make in TSQL.Parser.FUNCTIONS.items() if name not in _OURS}  # noqa: RUF012
        NO_PAREN_FUNCTIONS = TSQL.Parser.NO_PAREN_FUNCTIONS

        def _parse_returning(self) -> exp.Returning | None:
            """OUTPUT … INTO takes a table of any schema, and may list its columns."""
            if not self._match(TokenType.RETURNING):
                return None
            expressions = self._parse_csv(self._parse_expression)
            into = self._match(TokenType.INTO) and self._parse_table(schema=True)
            return self.expression(exp.Returning(expressions=expressions, into=into or None))  # type: ignore[no-any-return]


_DIALECT = Dialect()


def tokens_of(text: str) -> list[Token]:
    """The batch's tokens. Raises SyntaxProblem 105 for a string that does not end."""
    try:
        return _DIALECT.tokenize(text)
    except TokenError as error:
        start = unclosed(text)
        line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
        raise syntax_problem(105, text[start + 1 :].strip()[:30], line=line, column=column) from error


def parsed(tokens: Sequence[Token], text: str) -> exp.Expr:
    """The one statement that these tokens are. Raises SyntaxProblem at the place where it goes wrong."""
    first = tokens[0]
    try:
        found = _DIALECT.parser(error_level=ErrorLevel.IMMEDIATE).parse(list(expanded(tokens)), text)
    except ParseError as error:
        place = error.errors[0] if error.errors else {}
        near = place.get("highlight") or first.text
        line, column = _place(place, first, text)
        raise syntax_problem(102, near, line=line, column=column) from error
    except (RecursionError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise syntax_problem(102, first.text, line=first.line) from error
    if len(found) != 1 or found[0] is None:
        raise syntax_problem(102, first.text, line=first.line)
    return join_texts(found[0])


def _place(found: Mapping[str, Any], first: Token, text: str) -> tuple[int, int]:
    """Line and column of a parser's error; of the statement's beginning where it tells none."""
    if found.get("line") and found.get("col"):
        return found["line"], max(1, found["col"] - len(found.get("highlight") or " ") + 1)
    return first.line, first.start - text.rfind("\n", 0, first.start)


def parsed_expression(tokens: Sequence[Token], text: str) -> exp.Expr:
    """The one expression that these tokens are, rather than a query."""
    first = tokens[0]
    select = Token(TokenType.SELECT, "SELECT", first.line, first.col, first.start, first.start)
    query = parsed([select, *tokens], text)
    if (
        not isinstance(query, exp.Select)
        or len(query.expressions) != 1
        or set(_used(query)) != {"expressions"}
    ):
        raise syntax_problem(102, tokens[-1].text, line=tokens[-1].line)
    [expression] = query.expressions
    if isinstance(expression, exp.Alias | exp.Star):
        raise syntax_problem(102, tokens[-1].text, line=tokens[-1].line)
    result: exp.Expr = expression.pop()
    return result


def _used(query: exp.Expr) -> list[str]:
    return [name for name, value in query.args.items() if value]


def variable(node: object) -> str | None:
    """``@name`` or ``@@name`` in lower case, where the node is a variable."""
    if not isinstance(node, exp.Parameter):
        return None
    inner = node.this
    if isinstance(inner, exp.Parameter):
        return f"@@{inner.name.lower()}"
    return f"@{node.name.lower()}"
