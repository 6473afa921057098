"""A batch's tokens as a parser walks over them, and where statements end. Pure.

T-SQL needs no semicolons: a statement ends where a word begins another one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from engine.tsql.messages import SyntaxProblem, syntax_problem, unsupported

_QUOTED = frozenset(
    {
        TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.IDENTIFIER, TokenType.HEX_STRING,
        TokenType.RAW_STRING, TokenType.BYTE_STRING, TokenType.UNICODE_STRING,
    }
)  # fmt: skip

STARTERS = frozenset(
    {
        "ALTER", "BACKUP", "BEGIN", "BREAK", "BULK", "CHECKPOINT", "CLOSE", "COMMIT", "CONTINUE", "CREATE",
        "DBCC",
        "DEALLOCATE", "DECLARE", "DELETE", "DENY", "DROP", "ELSE", "END", "EXEC", "EXECUTE", "FETCH", "GOTO",
        "GRANT", "IF", "INSERT", "KILL", "MERGE", "OPEN", "PRINT", "RAISERROR", "READTEXT", "RECONFIGURE",
        "RESTORE", "RETURN", "REVERT", "REVOKE", "ROLLBACK", "SAVE", "SELECT", "SET", "SHUTDOWN", "THROW",
        "TRUNCATE", "UPDATE", "UPDATETEXT", "USE", "WAITFOR", "WHILE", "WRITETEXT",
    }
)  # fmt: skip
"""Words that begin a statement, or end a block: reserved, so they are no names unless quoted."""

_UNITS = frozenset({"UNION", "ALL", "EXCEPT", "INTERSECT"})
_ROWS = frozenset({"ROW", "ROWS"})


class Tokens:
    """A position among tokens."""

    def __init__(self, tokens: Sequence[Token], text: str) -> None:
        self.all = tokens
        self.text = text
        self.at = 0

    def word(self, ahead: int = 0) -> str:
        """The token there in upper case; empty for strings, quoted names, variables, and beyond the end."""
        return self.word_at(self.at + ahead)

    def word_at(self, index: int) -> str:
        """The same by its place."""
        if not 0 <= index < len(self.all) or self.all[index].token_type in _QUOTED:
            return ""
        word = self.all[index].text.upper()
        # @end and @begin are names, whatever their words mean elsewhere.
        return word if word == "@" or index == 0 or self.all[index - 1].text != "@" else ""

    @property
    def done(self) -> bool:
        """Whether nothing is left."""
        return self.at >= len(self.all)

    @property
    def line(self) -> int:
        """The line of the next token, or of the last one."""
        return self.all[min(self.at, len(self.all) - 1)].line

    @property
    def column(self) -> int:
        """The column of the next token, or of the last one, from 1."""
        return self.column_at(self.at)

    def column_at(self, index: int) -> int:
        """The column where a token begins, or the last one."""
        start = self.all[min(index, len(self.all) - 1)].start
        return start - self.text.rfind("\n", 0, start)

    def take(self, *words: str) -> bool:
        """Steps over these words if they are next."""
        if all(self.word(ahead) == word for ahead, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def need(self, *words: str) -> None:
        """Steps over these words. Raises SyntaxProblem where they are not next."""
        for word in words:
            if not self.take(word):
                raise self.wrong()

    def next(self) -> Token:
        """Steps over the next token. Raises SyntaxProblem at the end."""
        if self.done:
            raise self.wrong()
        self.at += 1
        return self.all[self.at - 1]

    def slice(self, end: int) -> Sequence[Token]:
        """The tokens up to ``end``, stepped over. Raises SyntaxProblem where there are none."""
        found = self.all[self.at : end]
        if not found:
            raise self.wrong()
        self.at = end
        return found

    def wrong(self) -> SyntaxProblem:
        """Error 102 at the next token."""
        token = self.all[min(self.at, len(self.all) - 1)]
        return syntax_problem(102, token.text, line=token.line, column=self.column)

    def refused(self, what: str, instead: str, at: int | None = None) -> SyntaxProblem:
        """That this is not supported, with its place."""
        index = min(self.at if at is None else at, len(self.all) - 1)
        return unsupported(what, instead, self.all[index].line, self.column_at(index))

    # Where things end

    def expression_end(self, stop: frozenset[str] = frozenset()) -> int:
        """Where an expression ends: at a semicolon, a statement's word, a bracket, or one of ``stop``."""
        return self._scan(self.at, allowed=0, stop=stop)

    def query_end(self, stop: frozenset[str] = frozenset()) -> int:
        """Where a query ends that begins with SELECT, WITH or a bracket."""
        return self._scan(self.at, allowed=1, stop=stop)

    def modification_end(self) -> int:
        """Where INSERT, UPDATE, DELETE end that begin here; its SELECT and SET belong to it."""
        verb = self.word()
        return self._scan(
            self.at + 1, allowed=1 if verb == "INSERT" else 0, sets=1 if verb == "UPDATE" else 0
        )

    def with_end(self) -> int:
        """Where a statement with common table expressions ends."""
        verb = self.with_verb()
        index = self._verb_index()
        if verb == "MERGE":
            return self.semicolon()
        return self._scan(index + 1, allowed=1 if verb == "INSERT" else 0, sets=1 if verb == "UPDATE" else 0)

    def with_verb(self) -> str:
        """The verb after the common table expressions."""
        return self.word_at(self._verb_index())

    def _verb_index(self) -> int:
        depth = 0
        for index in range(self.at, len(self.all)):
            word = self.word_at(index)
            depth += (word == "(") - (word == ")")
            if depth == 0 and word in ("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE"):
                return index
        raise self.wrong()

    def semicolon(self) -> int:
        """The next semicolon, or the end."""
        return next((i for i in range(self.at, len(self.all)) if self.word_at(i) == ";"), len(self.all))

    def definition_end(self) -> int:
        """Where CREATE, ALTER, DROP, TRUNCATE end."""
        verb = self.word()
        depth = 0
        for index in range(self.at + 1, len(self.all)):
            word, before, after = self.word_at(index), self.word_at(index - 1), self.word_at(index + 1)
            depth += (word == "(") - (word == ")")
            if depth or not (word == ";" or word in STARTERS):
                continue
            in_reference = before == "ON" or (word == "SET" and before in ("DELETE", "UPDATE"))
            in_alter = verb == "ALTER" and word in ("ALTER", "DROP") and after in ("COLUMN", "CONSTRAINT")
            if in_reference or in_alter or (word == "IF" and after == "EXISTS"):
                continue
            return index
        return len(self.all)

    def _scan(self, start: int, allowed: int, sets: int = 0, stop: frozenset[str] = frozenset()) -> int:
        depth = cases = 0
        for index in range(start, len(self.all)):
            word = self.word_at(index)
            if word == "(":
                depth += 1
            elif word == ")":
                depth -= 1
                if depth < 0:
                    return index
            if depth:
                continue
            if word == "CASE":
                cases += 1
            elif cases and word in ("END", "ELSE"):
                cases -= word == "END"
            elif word == "VALUES":
                allowed = 0
            elif word == ";" or (word in stop and not cases):
                return index
            elif word in STARTERS:
                before = self.word_at(index - 1)
                if word == "SELECT" and (allowed or before in _UNITS):
                    allowed = 0
                elif word == "SET" and sets:
                    sets -= 1
                elif not (word == "FETCH" and before in _ROWS):
                    return index
        return len(self.all)
