"""How long libpq takes to notice that a server's network drops everything: under half a minute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KEEPALIVE: Final[Mapping[str, int]] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
"""Connection parameters. By the system's own, who waits for an answer waits eleven minutes, and who sent
something a quarter of an hour. A server that merely thinks is waited for, however long."""
