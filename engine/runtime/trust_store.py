"""The machine's certificate authorities in Java's form.

The wheel's Java knows public authorities only; behind a proxy that has its own, nothing could be fetched.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import struct
from pathlib import Path

PASSWORD = "changeit"  # nosec B105
"""Java's own default: a trust store holds nothing secret."""

_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2


def machine_authorities() -> list[bytes]:
    """The certificates (DER) that programs of this machine trust; empty where no bundle is found."""
    named = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    for bundle in (named, *_BUNDLES):
        if bundle and Path(bundle).is_file():
            text = Path(bundle).read_text(encoding="ascii", errors="ignore")
            return [ssl.PEM_cert_to_DER_cert(pem) for pem in _CERTIFICATE.findall(text)]
    return []


def write_trust_store(path: Path, certificates: list[bytes]) -> None:
    """Writes a JKS file: header, an entry a certificate, and a digest salted with the password."""
    entries = b"".join(_entry(f"authority-{number}", der) for number, der in enumerate(certificates))
    body = struct.pack(">III", _MAGIC, _VERSION, len(certificates)) + entries
    salt = PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite"
    path.write_bytes(body + hashlib.sha1(salt + body, usedforsecurity=False).digest())


def _entry(alias: str, der: bytes) -> bytes:
    created = struct.pack(">q", 0)
    return (
        struct.pack(">I", _TRUSTED)
        + _text(alias)
        + created
        + _text("X.509")
        + struct.pack(">I", len(der))
        + der
    )


def _text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode("ascii")
