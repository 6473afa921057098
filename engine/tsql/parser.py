"""Batches to statements: control flow is parsed here, expressions and queries by sqlglot. Pure.

A batch is parsed whole: what is wrong or not supported in its last line keeps its first from running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.tsql import statements as st
from engine.tsql.checks import (
    check_condition,
    check_definition,
    check_expression,
    check_modification,
    check_query,
    check_value,
)
from engine.tsql.dialect import parsed, parsed_expression, tokens_of, variable
from engine.tsql.messages import syntax_problem
from engine.tsql.tokens import STARTERS, Tokens
from engine.tsql.types import SqlType, parse_type

SUPPORTED = (
    "Supported are DECLARE, SET, SELECT, INSERT, UPDATE, DELETE, MERGE, CREATE, ALTER, DROP and TRUNCATE of "
    "tables, IF, WHILE, BEGIN … END, TRY … CATCH, THROW, RAISERROR, PRINT, WAITFOR DELAY, EXEC, cursors, USE "
    "and transactions."
)
_OPTIONS = frozenset(
    {
        "NOCOUNT", "XACT_ABORT", "ANSI_NULLS", "QUOTED_IDENTIFIER", "ANSI_WARNINGS", "ANSI_PADDING",
        "ARITHABORT",
        "CONCAT_NULL_YIELDS_NULL", "ANSI_NULL_DFLT_ON", "NUMERIC_ROUNDABORT", "IMPLICIT_TRANSACTIONS",
        "DEADLOCK_PRIORITY", "LOCK_TIMEOUT", "DATEFORMAT", "DATEFIRST", "LANGUAGE", "TEXTSIZE",
    }
)  # fmt: skip
_ONLY_ON = frozenset(
    {"ANSI_NULLS", "QUOTED_IDENTIFIER", "ANSI_WARNINGS", "ANSI_PADDING", "CONCAT_NULL_YIELDS_NULL"}
)
_CURSOR_OPTIONS = frozenset(
    {
        "LOCAL", "GLOBAL", "FORWARD_ONLY", "SCROLL", "STATIC", "KEYSET", "DYNAMIC", "FAST_FORWARD",
        "READ_ONLY",
        "SCROLL_LOCKS", "OPTIMISTIC", "TYPE_WARNING", "INSENSITIVE",
    }
)  # fmt: skip
_INDEX_KINDS = ("CLUSTERED", "NONCLUSTERED")
_COMPOUND = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div, "%": exp.Mod}


@dataclass(frozen=True, slots=True)
class Scope:
    """Variables that are known before a batch begins: parameters of sp_executesql."""

    variables: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Names:
    """What was declared so far, for error 137 and its siblings."""

    scalars: set[str] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)


def parse(text: str, scope: Scope | None = None, first_line: int = 1) -> st.Statements:
    """The statements of a batch; ``first_line``: the script's line where it begins. Raises SyntaxProblem."""
    # Lines before the batch count, so that places are those of the script.
    text = "\n" * (first_line - 1) + text
    tokens = tokens_of(text)
    if not tokens:
        return ()
    known = scope or Scope()
    return _Parser(Tokens(tokens, text), _Names(set(known.variables), set(known.tables))).batch()


class _Parser:
    def __init__(self, tokens: Tokens, names: _Names) -> None:
        self._tokens = tokens
        self._names = names
        self._loops = 0
        self._catching = 0

    def batch(self) -> st.Statements:
        found = []
        while self._skip_semicolons():
            if self._tokens.word() in ("END", "ELSE"):
                raise self._tokens.wrong()
            found.append(self._statement())
        return tuple(found)

    def _skip_semicolons(self) -> bool:
        while self._tokens.take(";"):
            pass
        return not self._tokens.done

    def _statement(self) -> st.Statement:
        self._skip_semicolons()
        tokens = self._tokens
        word = tokens.word()
        parse_it = _STATEMENTS.get(word)
        if parse_it is not None:
            return parse_it(self)
        if word == "(":
            return self._select()
        if tokens.at == 0 and not tokens.done and word not in STARTERS:
            return self._execute(bare=True)
        if word.isalpha() and word:
            raise tokens.refused(f"The statement '{tokens.all[tokens.at].text}'", SUPPORTED)
        raise tokens.wrong()

    # Variables

    def _declare(self) -> st.Statement:
        line = self._start("DECLARE")
        if not (self._tokens.word() == "@" or self._tokens.word().startswith("@")):
            return self._declare_cursor(line)
        variables: list[st.Declaration] = []
        while True:
            name = self._variable_name()
            if name in self._names.scalars | self._names.tables:
                raise syntax_problem(134, name, line=self._tokens.line)
            self._tokens.take("AS")
            if self._tokens.word() == "TABLE":
                if variables:
                    raise self._tokens.refused("A table among other variables", "Declare it on its own.")
                return self._declare_table(line, name)
            if self._tokens.word() == "CURSOR":
                raise self._tokens.refused("A cursor variable", "Use DECLARE name CURSOR FOR …")
            type_ = self._type()
            initial = self._expression(frozenset({","})) if self._tokens.take("=") else None
            self._names.scalars.add(name)
            variables.append(st.Declaration(name, type_, initial))
            if not self._tokens.take(","):
                return st.Declare(line, tuple(variables))

    def _declare_table(self, line: int, name: str) -> st.Statement:
        start = self._tokens.at
        self._tokens.at += 1
        if self._tokens.word() != "(":
            raise self._tokens.wrong()
        end = self._closing()
        head = tokens_of(f"CREATE TABLE [{name}]")
        tree = parsed([*head, *self._tokens.all[start + 1 : end]], self._tokens.text)
        if not isinstance(tree, exp.Create):
            raise self._tokens.wrong()
        check_definition(tree, self._place(start))
        self._tokens.at = end
        self._names.tables.add(name)
        return st.DeclareTable(line, name, tree)

    def _closing(self) -> int:
        """The place after the bracket that closes the one that is next."""
        depth = 0
        for index in range(self._tokens.at, len(self._tokens.all)):
            word = self._tokens.word_at(index)
            depth += (word == "(") - (word == ")")
            if depth == 0:
                return index + 1
        raise self._tokens.wrong()

    def _variable_name(self) -> str:
        """``@name`` in lower case."""
        if not self._tokens.take("@"):
            raise self._tokens.wrong()
        token = self._tokens.next()
        if token.token_type in (TokenType.STRING, TokenType.NUMBER):
            raise self._tokens.wrong()
        return f"@{token.text.lower()}"

    def _known_variable(self) -> str:
        line = self._tokens.line
        name = self._variable_name()
        if name not in self._names.scalars:
            raise syntax_problem(137, name, line=line)
        return name

    def _type(self) -> SqlType:
        start = self._tokens.at
        text = self._tokens.next().text
        if self._tokens.word() == ".":  # sys.sysname
            self._tokens.at += 1
            text = self._tokens.next().text
        if text.upper() == "DOUBLE" and self._tokens.take("PRECISION"):
            text = "double precision"
        if self._tokens.word() == "(":
            end = self._closing()
            text += "".join(token.text for token in self._tokens.slice(end))
        try:
            return parse_type(text)
        except ValueError as error:
            raise self._tokens.refused(f"The type '{error}'", "See docs/tsql.md for types.", start) from error

    def _set(self) -> st.Statement:
        line = self._start("SET")
        tokens = self._tokens
        if tokens.word() != "@":
            return self._set_option(line)
        name = self._known_variable()
        operator = tokens.next().text
        if operator in _COMPOUND:
            tokens.need("=")
            right = self._expression()
            left = exp.Parameter(this=exp.Var(this=name[1:]))
            return st.Assign(line, name, _COMPOUND[operator](this=left, expression=exp.Paren(this=right)))
        if operator != "=":
            tokens.at -= 1
            raise tokens.wrong()
        if tokens.word() == "CURSOR":
            raise tokens.refused("A cursor variable", "Use DECLARE name CURSOR FOR …")
        return st.Assign(line, name, self._expression())

    def _set_option(self, line: int) -> st.Statement:
        tokens, start = self._tokens, self._tokens.at
        if tokens.take("TRANSACTION", "ISOLATION", "LEVEL"):
            level = " ".join(token.text.upper() for token in tokens.slice(tokens.expression_end()))
            levels = ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SNAPSHOT", "SERIALIZABLE")
            if level not in levels:
                raise tokens.refused(f"Isolation level {level}", f"Supported are {', '.join(levels)}.", start)
            return st.SetOption(line, "ISOLATION", level)
        option = tokens.next().text.upper()
        if option not in _OPTIONS:
            raise tokens.refused(f"SET {option}", f"Supported are {', '.join(sorted(_OPTIONS))}.", start)
        value = " ".join(token.text.upper() for token in tokens.slice(tokens.expression_end()))
        if option == "IMPLICIT_TRANSACTIONS" and value != "OFF":
            raise tokens.refused("SET IMPLICIT_TRANSACTIONS ON", "Use BEGIN TRANSACTION.", start)
        if option in _ONLY_ON and value != "ON":
            raise tokens.refused(f"SET {option} {value}", "It is always ON here.", start)
        return st.SetOption(line, option, value)

    # Queries and changes

    def _select(self, stop: frozenset[str] = frozenset()) -> st.Statement:
        tokens, line, start = self._tokens, self._tokens.line, self._tokens.at
        tree = self._parsed(tokens.query_end(stop))
        return self._selected(tree, line, start)

    def _selected(self, tree: exp.Expr, line: int, start: int) -> st.Statement:
        if not isinstance(tree, exp.Query):
            raise syntax_problem(102, self._tokens.all[start].text, line=line)
        self._check_variables(tree, line)
        if isinstance(tree, exp.Select) and (assigned := self._assigned(tree, line)):
            check_query(tree, self._place(start))
            return st.SelectAssign(line, assigned, tree)
        if tree.args.get("into"):
            check_modification(tree, self._place(start))
            return st.Modify(line, tree)
        check_query(tree, self._place(start))
        return st.Query(line, tree)

    def _assigned(self, query: exp.Select, line: int) -> tuple[str, ...]:
        """Variables that the query assigns to; then it selects their values alone."""
        names = [variable(each.this) if isinstance(each, exp.EQ) else None for each in query.expressions]
        if not any(names):
            return ()
        for name in names:
            if name is None:
                raise syntax_problem(141, line=line)
        query.set("expressions", [each.expression for each in query.expressions])
        return tuple(name for name in names if name)

    def _with(self) -> st.Statement:
        tokens, line, start = self._tokens, self._tokens.line, self._tokens.at
        verb = tokens.with_verb()
        tree = self._parsed(tokens.with_end())
        if verb == "SELECT":
            return self._selected(tree, line, start)
        return self._modification(tree, line, start)

    def _insert(self) -> st.Statement:
        tokens, line, start = self._tokens, self._tokens.line, self._tokens.at
        end = tokens.modification_end()
        if tokens.word_at(end) not in ("EXEC", "EXECUTE"):
            return self._modification(self._parsed(end), line, start)
        head = self._parsed(end, tokens_of(" DEFAULT VALUES"))
        execute = self._execute()
        if not isinstance(head, exp.Insert) or not isinstance(execute, st.Execute | st.ExecuteText):
            raise tokens.wrong()
        self._check_variables(head, line)
        target = head.this
        columns = [each.name for each in target.expressions] if isinstance(target, exp.Schema) else []
        table = target.this if isinstance(target, exp.Schema) else target
        return st.InsertExecute(line, table, tuple(columns), execute)

    def _update_or_delete(self) -> st.Statement:
        tokens, line, start = self._tokens, self._tokens.line, self._tokens.at
        if tokens.word(1) == "STATISTICS":
            raise tokens.refused("UPDATE STATISTICS", "The source does it by itself.")
        if tokens.word(1) == "TOP":
            raise tokens.refused(f"{tokens.word()} TOP", "Give a condition on a subquery with TOP.")
        return self._modification(self._parsed(tokens.modification_end()), line, start)

    def _merge(self) -> st.Statement:
        tokens, line, start = self._tokens, self._tokens.line, self._tokens.at
        return self._modification(self._parsed(tokens.semicolon()), line, start)

    def _modification(self, tree: exp.Expr, line: int, start: int) -> st.Statement:
        if not isinstance(tree, exp.Insert | exp.Update | exp.Delete | exp.Merge):
            raise syntax_problem(102, self._tokens.all[start].text, line=line)
        self._check_variables(tree, line)
        check_modification(tree, self._place(start))
        return st.Modify(line, tree)

    def _define(self) -> st.Statement:
        tokens, line, start = self._tokens, self._tokens.line, self._tokens.at
        at = 3 if tokens.word(1) == "OR" and tokens.word(2) == "ALTER" else 1
        if tokens.word(at) in ("FUNCTION", "PROCEDURE", "PROC", "TRIGGER", "VIEW"):
            return self._module(line, tokens.word(at))
        # The source has one kind of index, and sqlglot does not know these words everywhere.
        words = [
            token
            for token in tokens.slice(tokens.definition_end())
            if token.token_type == TokenType.IDENTIFIER or token.text.upper() not in _INDEX_KINDS
        ]
        tree = parsed(words, tokens.text)
        self._check_variables(tree, line)
        check_definition(tree, self._place(start))
        return st.Define(line, tree)

    def _module(self, line: int, kind: str) -> st.Statement:
        """CREATE FUNCTION takes the rest of its batch."""
        tokens = self._tokens
        if tokens.word() == "DROP":
            tree = self._parsed(tokens.definition_end())
            check_definition(tree, self._place(tokens.at - 1))
            return st.Define(line, tree)
        if kind != "FUNCTION":
            raise tokens.refused(f"{tokens.word()} {kind}", "Only wrapper functions can be made.")
        if tokens.at != 0:
            raise syntax_problem(111, f"{tokens.word()} {kind}", line=line)
        tokens.at = len(tokens.all)
        return st.DefineWrapper(line, tokens.text)

    # Calls

    def _execute(self, bare: bool = False) -> st.Statement:
        tokens = self._tokens
        line = tokens.line
        if not bare:
            tokens.at += 1
        if tokens.word() == "(":
            return self._execute_text(line)
        if tokens.take("AS"):
            return self._impersonate(line)
        result = None
        if tokens.word() == "@":
            result = self._known_variable()
            tokens.need("=")
        procedure = self._object_name()
        if tokens.take(";") and not tokens.done and tokens.all[tokens.at].token_type == TokenType.NUMBER:
            raise tokens.refused("A numbered procedure", "Name it alone.")
        arguments: list[st.Argument] = []
        ends = tokens.at > 0 and tokens.word_at(tokens.at - 1) == ";"
        while not ends and not self._at_end():
            arguments.append(self._argument())
            if not tokens.take(","):
                break
        if tokens.take("WITH", "RECOMPILE"):
            pass
        return st.Execute(line, procedure, tuple(arguments), result)

    def _at_end(self) -> bool:
        tokens = self._tokens
        return tokens.done or tokens.word() in (";", ")", "WITH") or tokens.expression_end() == tokens.at

    def _argument(self) -> st.Argument:
        tokens = self._tokens
        name = None
        if tokens.word() == "@" and tokens.word(2) == "=":
            name = self._variable_name()
            tokens.need("=")
        if tokens.take("DEFAULT"):
            return st.Argument(name, None)
        value = self._constant()
        is_output = tokens.take("OUTPUT") or tokens.take("OUT")
        output = variable(value) if is_output else None
        if is_output and output is None:
            raise tokens.refused("OUTPUT of a constant", "Give a variable.", tokens.at - 1)
        return st.Argument(name, value, output)

    def _constant(self) -> exp.Expr:
        """An argument's value: a constant, a variable, or a word that stands for its own text."""
        tokens, start = self._tokens, self._tokens.at
        if tokens.take("-") or tokens.take("+"):
            pass
        if tokens.word() == "@":
            if tokens.word(1) == "@":
                tokens.at += 3
            else:
                self._known_variable()
            return parsed_expression(tokens.all[start : tokens.at], tokens.text)
        token = tokens.next()
        if token.token_type in (TokenType.IDENTIFIER,) or (
            token.token_type not in _CONSTANTS and token.text[:1].isalpha() and token.text.upper() != "NULL"
        ):
            value: exp.Expr = exp.Literal.string(token.text)
        else:
            value = parsed_expression(tokens.all[start : tokens.at], tokens.text)
            check_expression(value, self._place(start))
        if not self._at_end() and tokens.word() not in (",", "OUTPUT", "OUT"):
            raise tokens.refused(
                "An expression as an argument", "Assign it to a variable, and give the variable."
            )
        return value

    def _execute_text(self, line: int) -> st.Statement:
        tokens = self._tokens
        tokens.need("(")
        expression = self._expression()
        tokens.need(")")
        return st.ExecuteText(line, expression)

    def _impersonate(self, line: int) -> st.Statement:
        tokens = self._tokens
        if not (tokens.take("USER") or tokens.take("LOGIN")):
            raise tokens.refused("EXECUTE AS of another kind", "Use EXECUTE AS USER = '…'.")
        tokens.need("=")
        return st.Impersonate(line, self._expression())

    def _revert(self) -> st.Statement:
        return st.Impersonate(self._start("REVERT"), None)

    def _object_name(self) -> tuple[str, ...]:
        """Parts of a name with dots."""
        parts = [self._name()]
        while self._tokens.take("."):
            while self._tokens.take("."):
                parts.append("")
            parts.append(self._name())
        return tuple(parts)

    def _name(self) -> str:
        token = self._tokens.next()
        if token.token_type in _CONSTANTS or (
            not (token.text[:1].isalpha() or token.text[:1] in "_#")
            and (token.token_type != TokenType.IDENTIFIER)
        ):
            self._tokens.at -= 1
            raise self._tokens.wrong()
        if token.text == "#":
            following = self._tokens.next()
            return f"#{'#' + self._tokens.next().text if following.text == '#' else following.text}"
        return token.text

    # Flow

    def _begin(self) -> st.Statement:
        tokens, line = self._tokens, self._tokens.line
        tokens.at += 1
        if tokens.take("TRY"):
            return self._try(line)
        if tokens.take("TRAN") or tokens.take("TRANSACTION"):
            return st.Begin(line, self._transaction_name())
        if tokens.word() in ("DISTRIBUTED", "ATOMIC", "DIALOG", "CONVERSATION"):
            raise tokens.refused(f"BEGIN {tokens.word()}", "Use BEGIN TRANSACTION.")
        body = self._until_end()
        if not body:
            raise tokens.wrong()
        tokens.need("END")
        return st.Block(line, body)

    def _try(self, line: int) -> st.Statement:
        tokens = self._tokens
        tried = self._until_end()
        tokens.need("END", "TRY")
        self._skip_semicolons()
        tokens.need("BEGIN", "CATCH")
        self._catching += 1
        caught = self._until_end()
        self._catching -= 1
        tokens.need("END", "CATCH")
        return st.TryCatch(line, tried, caught)

    def _until_end(self) -> st.Statements:
        found: list[st.Statement] = []
        while self._skip_semicolons() and self._tokens.word() != "END":
            if self._tokens.word() == "ELSE":
                raise self._tokens.wrong()
            found.append(self._statement())
        return tuple(found)

    def _if(self) -> st.Statement:
        line = self._start("IF")
        condition = self._expression(check=check_condition)
        then = self._statement()
        at = self._tokens.at
        self._skip_semicolons()
        if self._tokens.take("ELSE"):
            return st.If(line, condition, then, self._statement())
        self._tokens.at = at
        return st.If(line, condition, then)

    def _while(self) -> st.Statement:
        line = self._start("WHILE")
        condition = self._expression(check=check_condition)
        self._loops += 1
        body = self._statement()
        self._loops -= 1
        return st.While(line, condition, body)

    def _leave(self) -> st.Statement:
        token = self._tokens.next()
        if not self._loops:
            raise syntax_problem(135, token.text.upper(), line=token.line)
        return st.Leave(token.line, token.text.upper() == "CONTINUE")

    def _return(self) -> st.Statement:
        line = self._start("RETURN")
        if not self._at_end():
            raise self._tokens.refused("RETURN with a value", "A batch returns none.")
        return st.Return(line)

    def _throw(self) -> st.Statement:
        line = self._start("THROW")
        if self._at_end():
            if not self._catching:
                raise syntax_problem(10704, line=line)
            return st.Throw(line, ())
        arguments = self._list()
        if len(arguments) != 3:
            raise syntax_problem(102, "THROW", line=line)
        return st.Throw(line, arguments)

    def _raise_error(self) -> st.Statement:
        line = self._start("RAISERROR")
        self._tokens.need("(")
        arguments = self._list()
        self._tokens.need(")")
        if len(arguments) < 3:
            raise syntax_problem(102, ")", line=self._tokens.line)
        if self._tokens.take("WITH"):
            for token in self._tokens.slice(self._tokens.expression_end()):
                if token.text.upper() not in ("LOG", "NOWAIT", "SETERROR", ","):
                    raise syntax_problem(102, token.text, line=token.line)
        return st.RaiseError(line, arguments)

    def _list(self) -> tuple[exp.Expr, ...]:
        found = [self._expression(frozenset({","}))]
        while self._tokens.take(","):
            found.append(self._expression(frozenset({","})))
        return tuple(found)

    def _print(self) -> st.Statement:
        return st.Print(self._start("PRINT"), self._expression())

    def _wait(self) -> st.Statement:
        line = self._start("WAITFOR")
        if not self._tokens.take("DELAY"):
            raise self._tokens.refused(f"WAITFOR {self._tokens.word()}", "Use WAITFOR DELAY 'hh:mm:ss'.")
        return st.WaitFor(line, self._expression())

    def _use(self) -> st.Statement:
        return st.Use(self._start("USE"), self._name())

    # Transactions

    def _transaction_name(self) -> str | None:
        if self._at_end() or self._tokens.word() == "WITH":
            return None
        if self._tokens.word() == "@":
            raise self._tokens.refused("A transaction's name in a variable", "Write the name.")
        return self._name()

    def _commit(self) -> st.Statement:
        line = self._start("COMMIT")
        if not (self._tokens.take("TRAN") or self._tokens.take("TRANSACTION")):
            self._tokens.take("WORK")
            return st.Commit(line)
        self._transaction_name()
        return st.Commit(line)

    def _rollback(self) -> st.Statement:
        line = self._start("ROLLBACK")
        if not (self._tokens.take("TRAN") or self._tokens.take("TRANSACTION")):
            self._tokens.take("WORK")
            return st.Rollback(line)
        return st.Rollback(line, self._transaction_name())

    def _save(self) -> st.Statement:
        line = self._start("SAVE")
        if not (self._tokens.take("TRAN") or self._tokens.take("TRANSACTION")):
            raise self._tokens.wrong()
        name = self._transaction_name()
        if name is None:
            raise self._tokens.wrong()
        return st.Save(line, name)

    # Cursors

    def _declare_cursor(self, line: int) -> st.Statement:
        tokens = self._tokens
        name = self._cursor_name()
        tokens.take("INSENSITIVE")
        scrolls = tokens.take("SCROLL")
        if not tokens.take("CURSOR"):
            raise tokens.wrong()
        while tokens.word() in _CURSOR_OPTIONS:
            scrolls |= tokens.next().text.upper() == "SCROLL"
        tokens.need("FOR")
        start = tokens.at
        query = self._with() if tokens.word() == "WITH" else self._select(frozenset({"FOR"}))
        if not isinstance(query, st.Query):
            raise tokens.refused("A cursor over this statement", "Give a SELECT.", start)
        if tokens.take("FOR"):
            tokens.need("READ", "ONLY")
        return st.DeclareCursor(line, name, query.query, scrolls)

    def _cursor_name(self) -> str:
        self._tokens.take("GLOBAL")
        if self._tokens.word() == "@":
            raise self._tokens.refused("A cursor variable", "Use DECLARE name CURSOR FOR …")
        return self._name().lower()

    def _cursor_step(self) -> st.Statement:
        token = self._tokens.next()
        return st.CursorStep(token.line, token.text.upper(), self._cursor_name())

    def _fetch(self) -> st.Statement:
        line = self._start("FETCH")
        tokens, direction, place = self._tokens, "NEXT", None
        if tokens.word() in ("NEXT", "PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE"):
            direction = tokens.next().text.upper()
            if direction in ("ABSOLUTE", "RELATIVE"):
                place = self._expression(frozenset({"FROM"}))
            tokens.need("FROM")
        else:
            tokens.take("FROM")
        name = self._cursor_name()
        into: list[str] = []
        if tokens.take("INTO"):
            into.append(self._known_variable())
            while tokens.take(","):
                into.append(self._known_variable())
        return st.Fetch(line, name, direction, place, tuple(into))

    def _nothing(self) -> st.Statement:
        line = self._start("RECONFIGURE")
        if self._tokens.take("WITH"):
            self._tokens.need("OVERRIDE")
        return st.Nothing(line)

    # Helpers

    def _start(self, word: str) -> int:
        line = self._tokens.line
        self._tokens.need(word)
        return line

    def _place(self, index: int) -> tuple[int, int]:
        token = self._tokens.all[min(index, len(self._tokens.all) - 1)]
        return token.line, max(1, token.col - len(token.text) + 1)

    def _expression(
        self,
        stop: frozenset[str] = frozenset(),
        check: Callable[[exp.Expr, tuple[int, int]], None] = check_value,
    ) -> exp.Expr:
        tokens, start = self._tokens, self._tokens.at
        line = tokens.line
        tree = parsed_expression(tokens.slice(tokens.expression_end(stop)), tokens.text)
        self._check_variables(tree, line)
        check(tree, self._place(start))
        return tree

    def _parsed(self, end: int, more: Iterable[object] = ()) -> exp.Expr:
        return parsed([*self._tokens.slice(end), *more], self._tokens.text)  # type: ignore[list-item]

    def _check_variables(self, tree: exp.Expr, line: int) -> None:
        for node in tree.find_all(exp.Parameter):
            name = variable(node)
            if name is None or isinstance(node.parent, exp.Parameter) or name.startswith("@@"):
                continue
            if isinstance(node.parent, exp.Table):
                if name not in self._names.tables:
                    raise syntax_problem(1087, name, line=line)
            elif name not in self._names.scalars:
                raise syntax_problem(137, name, line=line)


_CONSTANTS = frozenset(
    {
        TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.HEX_STRING, TokenType.NUMBER,
    }
)  # fmt: skip
_STATEMENTS: dict[str, Callable[[_Parser], st.Statement]] = {
    "DECLARE": _Parser._declare,
    "SET": _Parser._set,
    "SELECT": _Parser._select,
    "WITH": _Parser._with,
    "INSERT": _Parser._insert,
    "UPDATE": _Parser._update_or_delete,
    "DELETE": _Parser._update_or_delete,
    "MERGE": _Parser._merge,
    "CREATE": _Parser._define,
    "ALTER": _Parser._define,
    "DROP": _Parser._define,
    "TRUNCATE": _Parser._define,
    "EXEC": _Parser._execute,
    "EXECUTE": _Parser._execute,
    "BEGIN": _Parser._begin,
    "IF": _Parser._if,
    "WHILE": _Parser._while,
    "BREAK": _Parser._leave,
    "CONTINUE": _Parser._leave,
    "RETURN": _Parser._return,
    "THROW": _Parser._throw,
    "RAISERROR": _Parser._raise_error,
    "PRINT": _Parser._print,
    "WAITFOR": _Parser._wait,
    "USE": _Parser._use,
    "COMMIT": _Parser._commit,
    "ROLLBACK": _Parser._rollback,
    "SAVE": _Parser._save,
    "OPEN": _Parser._cursor_step,
    "CLOSE": _Parser._cursor_step,
    "DEALLOCATE": _Parser._cursor_step,
    "FETCH": _Parser._fetch,
    "REVERT": _Parser._revert,
    "RECONFIGURE": _Parser._nothing,
}
