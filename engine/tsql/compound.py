"""``a += 1`` in UPDATE … SET and SELECT @a += …: as ``a = a + (1)``, which sqlglot knows. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

_OPERATORS = frozenset("+-*/%&|^")
_ENDS = frozenset({"FROM", "WHERE", "OUTPUT", "ORDER", "GROUP", "OPTION", "INTO", "WHEN"})


def expanded(tokens: Sequence[Token]) -> Sequence[Token]:
    """The same tokens without compound assignments."""
    if not any(_is_compound(tokens, index) for index in range(len(tokens))):
        return tokens
    found: list[Token] = []
    closings: list[int] = []
    index = 0
    while index < len(tokens):
        while closings and closings[-1] == index:
            found.append(_like(tokens[index - 1], TokenType.R_PAREN, ")"))
            closings.pop()
        if _is_compound(tokens, index):
            target = tokens[_target(tokens, index) : index]
            found += [tokens[index + 1], *target, tokens[index]]
            found.append(_like(tokens[index + 1], TokenType.L_PAREN, "("))
            closings.append(_end(tokens, index + 2))
            index += 2
        else:
            found.append(tokens[index])
            index += 1
    found += [_like(tokens[-1], TokenType.R_PAREN, ")") for _ in closings]
    return found


def _is_compound(tokens: Sequence[Token], index: int) -> bool:
    if not 0 < index < len(tokens) - 1 or tokens[index].text not in _OPERATORS:
        return False
    after = tokens[index + 1]
    return after.token_type == TokenType.EQ and after.start == tokens[index].end + 1


def _target(tokens: Sequence[Token], end: int) -> int:
    """Where the name before ``end`` begins: ``@a``, ``a`` or ``t.a``."""
    start = end - 1
    while start >= 2 and tokens[start - 1].token_type == TokenType.DOT:
        start -= 2
    return start - 1 if start and tokens[start - 1].token_type == TokenType.PARAMETER else start


def _end(tokens: Sequence[Token], start: int) -> int:
    """Where the expression ends: at a comma, a clause's word or a bracket of what is around it."""
    depth = 0
    for index in range(start, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        is_name = kind in (TokenType.IDENTIFIER, TokenType.STRING, TokenType.NATIONAL_STRING)
        ends = kind == TokenType.COMMA or (not is_name and tokens[index].text.upper() in _ENDS)
        if depth < 0 or (depth == 0 and ends):
            return index
    return len(tokens)


def _like(token: Token, kind: TokenType, text: str) -> Token:
    """A token in the place of another one."""
    return Token(kind, text, token.line, token.col, token.start, token.end)
