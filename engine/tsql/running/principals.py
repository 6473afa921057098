"""Users and roles of the source by T-SQL's names."""

from __future__ import annotations

from engine.tsql import statements as st
from engine.tsql.messages import sql_error
from engine.tsql.names import quoted
from engine.tsql.running.session import Session

_OWNER_ROLE = "db_owner"
_OWN_USERS = ("cdc", "dbo")


class Principals:
    """Whose rights hold, and who has which.

    The users dbo and, on an enabled database, cdc stand for the owner, as the original's do by their
    membership of db_owner; there is no role of these names at the source.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def change(self, statement: st.ChangePrincipal) -> None:
        """CREATE, ALTER, DROP of users and roles. Raises 911, 15023, 15151, and 229 without the right."""
        name, other = statement.name, statement.other or ""
        match statement.action:
            case "CREATE USER" | "CREATE ROLE":
                if self._is_own(name):
                    raise sql_error(15023, name)
                self._session.work.run(f"CREATE ROLE {quoted(name)} NOLOGIN")
            case "DROP":
                self._session.work.run(f"DROP ROLE {quoted(name)}")
            case "DROP IF EXISTS":
                self._session.work.run(f"DROP ROLE IF EXISTS {quoted(name)}")
            case "ADD MEMBER":
                self.add_member(name, other)
            case "DROP MEMBER":
                self.drop_member(name, other)
            case _:
                self._own(name, other)

    def add_member(self, role: str, member: str) -> None:
        """ALTER ROLE … ADD MEMBER, sp_addrolemember."""
        if role.lower() == _OWNER_ROLE and self._is_own(member):
            return
        self._session.work.run(f"GRANT {quoted(self._role(role))} TO {quoted(member)}")

    def drop_member(self, role: str, member: str) -> None:
        """ALTER ROLE … DROP MEMBER, sp_droprolemember."""
        self._session.work.run(f"REVOKE {quoted(self._role(role))} FROM {quoted(member)}")

    def impersonate(self, user: str) -> None:
        """EXECUTE AS USER, for the owner alone. Raises 15517."""
        if not self._session.is_owner():
            raise sql_error(15517, user)
        self._session.work.impersonate(None if self._is_own(user) else user)

    def _role(self, role: str) -> str:
        """The role at the source: for db_owner the one of this name, else that of the database's owner."""
        if role.lower() != _OWNER_ROLE:
            return role
        answer = self._session.work.query(
            "SELECT rolname FROM pg_catalog.pg_roles r LEFT JOIN pg_catalog.pg_database d"
            f" ON d.datdba = r.oid AND d.datname = current_database() WHERE rolname = '{_OWNER_ROLE}'"
            f" OR d.oid IS NOT NULL ORDER BY rolname <> '{_OWNER_ROLE}' LIMIT 1"
        )
        [[found]] = answer.rows
        return str(found)

    def _own(self, database: str, owner: str) -> None:
        if database.lower() != self._session.database.lower():
            raise sql_error(911, database, "USE it first.")
        [[name]] = self._session.work.query("SELECT current_database()").rows
        self._session.work.run(f"ALTER DATABASE {quoted(str(name))} OWNER TO {quoted(owner)}")

    def _is_own(self, user: str) -> bool:
        if user.lower() not in _OWN_USERS:
            return False
        return user.lower() == "dbo" or self._session.is_enabled()
