"""Who may reach the dashboard: anybody on this machine, or whoever logs in at a provider of identities."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from engine.runtime.unready import Unready

FILE = "secrets.toml"
"""In the home: its table ``[auth]`` is what Streamlit's st.login wants to know of the provider."""


def login_secrets(home: Path) -> Mapping[str, Any]:
    """What the home's file says; nothing without one. Raises Unready when it is no TOML."""
    file = home / FILE
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Unready(f"{file} cannot be read as TOML: {error}", "Mend the file, or remove it.") from error


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches that address, or is there."""
    if address == "localhost":
        return True
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def check_address(home: Path, address: str) -> None:
    """Raises Unready for an address that others reach, where nobody has to log in."""
    if not is_loopback(address) and "auth" not in login_secrets(home):
        raise Unready(
            f"The dashboard is not served on {address}: without a login everybody who reaches it could act.",
            f"Put a table [auth] into {home / FILE} (README.md, Users and roles), or serve on 127.0.0.1.",
        )
