"""Whether a port of this machine is free, and whether the dashboard answers there."""

from __future__ import annotations

import random
import socket
from http.client import HTTPConnection, HTTPException

HOST = "127.0.0.1"
_EVERYWHERE_IPV4 = "0.0.0.0"  # nosec B104
_EVERYWHERE = ("", _EVERYWHERE_IPV4, "::")
"""What settings may say; nothing is bound to it here."""
_HEALTH = "/_stcore/health"
_OURS = range(20_000, 32_000)


def port_is_free(port: int, address: str = HOST) -> bool:
    """Whether a server could listen on the port of an interface, the loopback one by default, now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def page_answers(port: int, address: str = HOST, seconds: float = 5.0) -> bool:
    """Whether the dashboard says that it is well, and its page comes."""
    host = HOST if address in _EVERYWHERE else address
    found = _get(host, port, _HEALTH, seconds)
    return found is not None and b"<html" in (_get(host, port, "/", seconds) or b"")


def _get(host: str, port: int, path: str, seconds: float) -> bytes | None:
    connection = HTTPConnection(host, port, timeout=seconds)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.read() if answer.status == 200 else None
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now.

    Whoever is told of it binds it seconds later: it is none of those that systems give to outgoing
    connections meanwhile.
    """
    free = (each for each in random.sample(_OURS, len(_OURS)) if port_is_free(each))
    return next(free)
