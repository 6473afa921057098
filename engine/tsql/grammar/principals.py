"""Users, roles, and whose a database is."""

from __future__ import annotations

from engine.tsql import statements as st
from engine.tsql.grammar.base import Grammar

KINDS = ("USER", "ROLE", "AUTHORIZATION")


def change_principal(grammar: Grammar) -> st.Statement:
    """CREATE, ALTER, DROP of USER and ROLE; ALTER AUTHORIZATION ON DATABASE."""
    tokens, line = grammar.tokens, grammar.tokens.line
    verb, kind = tokens.next().text.upper(), tokens.next().text.upper()
    match verb, kind:
        case "CREATE", "USER":
            return _create_user(grammar, line)
        case "CREATE", "ROLE":
            return st.ChangePrincipal(line, "CREATE ROLE", grammar.name())
        case "DROP", "USER" | "ROLE":
            action = "DROP IF EXISTS" if tokens.take("IF", "EXISTS") else "DROP"
            return st.ChangePrincipal(line, action, grammar.name())
        case "ALTER", "ROLE":
            return _alter_role(grammar, line)
        case "ALTER", "AUTHORIZATION":
            return _own(grammar, line)
    raise tokens.refused(f"{verb} {kind}", "Users and roles can be created and dropped.", tokens.at - 2)


def _create_user(grammar: Grammar, line: int) -> st.Statement:
    """A login is the source's own affair: a user is a role that nobody logs in as."""
    tokens = grammar.tokens
    name = grammar.name()
    if not tokens.take("WITHOUT", "LOGIN"):
        raise tokens.refused("CREATE USER with a login", "Use WITHOUT LOGIN; logins are made at the source.")
    if tokens.take("WITH"):
        tokens.need("DEFAULT_SCHEMA", "=")
        grammar.name()
    return st.ChangePrincipal(line, "CREATE USER", name)


def _alter_role(grammar: Grammar, line: int) -> st.Statement:
    tokens = grammar.tokens
    role = grammar.name()
    if tokens.word() not in ("ADD", "DROP"):
        raise tokens.refused("This change of a role", "Use ADD MEMBER or DROP MEMBER.")
    verb = tokens.next().text.upper()
    tokens.need("MEMBER")
    return st.ChangePrincipal(line, f"{verb} MEMBER", role, grammar.name())


def _own(grammar: Grammar, line: int) -> st.Statement:
    tokens = grammar.tokens
    tokens.need("ON")
    if not tokens.take("DATABASE", "::"):
        raise tokens.refused("ALTER AUTHORIZATION of another kind", "Use ON DATABASE::name TO user.")
    database = grammar.name()
    tokens.need("TO")
    return st.ChangePrincipal(line, "OWN", database, grammar.name())
