"""What the rules of all statements share: tokens, declared names, expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.tsql import statements as st
from engine.tsql.checks import check_value
from engine.tsql.dialect import parsed, parsed_expression, variable
from engine.tsql.messages import syntax_problem
from engine.tsql.tokens import Tokens
from engine.tsql.types import SqlType, parse_type

CONSTANTS = frozenset({TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.HEX_STRING, TokenType.NUMBER})


class Grammar:
    """A batch's tokens, and what was declared so far (for error 137 and its siblings)."""

    def __init__(
        self,
        tokens: Tokens,
        scalars: Iterable[str],
        tables: Iterable[str],
        statement: Callable[[Grammar], st.Statement],
    ) -> None:
        """``statement``: the rule of any statement."""
        self.tokens = tokens
        self.scalars = set(scalars)
        self.tables = set(tables)
        self.loops = 0
        self.catching = 0
        """How many loops and CATCH blocks the next statement stands in."""
        self.in_function = False
        """Whether RETURN gives a value."""
        self._statement = statement

    def skip_semicolons(self) -> bool:
        """Whether something follows them."""
        while self.tokens.take(";"):
            pass
        return not self.tokens.done

    def statement(self) -> st.Statement:
        """The next statement."""
        return self._statement(self)

    def closing(self) -> int:
        """The place after the bracket that closes the one that is next."""
        depth = 0
        for index in range(self.tokens.at, len(self.tokens.all)):
            word = self.tokens.word_at(index)
            depth += (word == "(") - (word == ")")
            if depth == 0:
                return index + 1
        raise self.tokens.wrong()

    def variable_name(self) -> str:
        """``@name`` in lower case."""
        if not self.tokens.take("@"):
            raise self.tokens.wrong()
        token = self.tokens.next()
        if token.token_type in (TokenType.STRING, TokenType.NUMBER):
            raise self.tokens.wrong()
        return f"@{token.text.lower()}"

    def known_variable(self) -> str:
        """``@name`` of a declared variable. Raises 137."""
        line = self.tokens.line
        name = self.variable_name()
        if name not in self.scalars:
            raise syntax_problem(137, name, line=line)
        return name

    def type_(self) -> SqlType:
        """The name of a type. Raises 50040 for one that there is not."""
        start = self.tokens.at
        text = self.tokens.next().text
        if self.tokens.word() == ".":  # sys.sysname
            self.tokens.at += 1
            text = self.tokens.next().text
        if text.upper() == "DOUBLE" and self.tokens.take("PRECISION"):
            text = "double precision"
        if self.tokens.word() == "(":
            end = self.closing()
            text += "".join(token.text for token in self.tokens.slice(end))
        try:
            return parse_type(text)
        except ValueError as error:
            raise self.tokens.refused(f"The type '{error}'", "See docs/tsql.md for types.", start) from error

    def start(self, word: str) -> int:
        """Steps over the statement's word; its line."""
        line = self.tokens.line
        self.tokens.need(word)
        return line

    def place(self, index: int) -> tuple[int, int]:
        """Line and column of a token."""
        return self.tokens.all[min(index, len(self.tokens.all) - 1)].line, self.tokens.column_at(index)

    def expression(
        self,
        stop: frozenset[str] = frozenset(),
        check: Callable[[exp.Expr, tuple[int, int]], None] = check_value,
    ) -> exp.Expr:
        """The expression that is next, as far as it goes."""
        tokens, start = self.tokens, self.tokens.at
        line = tokens.line
        tree = parsed_expression(tokens.slice(tokens.expression_end(stop)), tokens.text)
        self.check_variables(tree, line)
        check(tree, self.place(start))
        return tree

    def parsed(self, end: int, more: Iterable[object] = ()) -> exp.Expr:
        """The tree of the tokens up to ``end``, and of ``more`` after them."""
        return parsed([*self.tokens.slice(end), *more], self.tokens.text)  # type: ignore[list-item]

    def check_variables(self, tree: exp.Expr, line: int) -> None:
        """Raises 137 and 1087 for variables that were not declared."""
        for node in tree.find_all(exp.Parameter):
            name = variable(node)
            if (
                name is None
                or isinstance(node.parent, exp.Parameter | exp.Returning)
                or name.startswith("@@")
            ):
                continue
            if isinstance(node.parent, exp.Table):
                if name not in self.tables:
                    raise syntax_problem(1087, name, line=line)
            elif name not in self.scalars:
                raise syntax_problem(137, name, line=line)

    def at_end(self) -> bool:
        """Whether the statement ends here."""
        tokens = self.tokens
        return tokens.done or tokens.word() in (";", ")", "WITH") or tokens.expression_end() == tokens.at

    def object_name(self) -> tuple[str, ...]:
        """Parts of a name with dots."""
        parts = [self.name()]
        while self.tokens.take("."):
            while self.tokens.take("."):
                parts.append("")
            parts.append(self.name())
        return tuple(parts)

    def name(self) -> str:
        """One name, quoted or not."""
        token = self.tokens.next()
        if token.token_type in CONSTANTS or (
            not (token.text[:1].isalpha() or token.text[:1] in "_#")
            and (token.token_type != TokenType.IDENTIFIER)
        ):
            self.tokens.at -= 1
            raise self.tokens.wrong()
        if token.text == "#":
            following = self.tokens.next()
            return f"#{'#' + self.tokens.next().text if following.text == '#' else following.text}"
        return token.text

    def expressions(self) -> tuple[exp.Expr, ...]:
        """Expressions between commas."""
        found = [self.expression(frozenset({","}))]
        while self.tokens.take(","):
            found.append(self.expression(frozenset({","})))
        return tuple(found)
