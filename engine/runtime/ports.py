"""Whether a port of this machine is free, and whether the dashboard answers there."""

from __future__ import annotations

import socket
from http.client import HTTPConnection, HTTPException

HOST = "127.0.0.1"
_HEALTH = "/_stcore/health"


def port_is_free(port: int, address: str = HOST) -> bool:
    """Whether a server could listen on the port of an interface, the loopback one by default, now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def page_answers(port: int, seconds: float = 5.0) -> bool:
    """Whether the dashboard says that it is well, and its page comes."""
    return _get(port, _HEALTH, seconds) is not None and b"<html" in (_get(port, "/", seconds) or b"")


def _get(port: int, path: str, seconds: float) -> bytes | None:
    connection = HTTPConnection(HOST, port, timeout=seconds)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.read() if answer.status == 200 else None
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
