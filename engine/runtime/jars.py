"""Delta's jars: resolved once at set-up, because resolving at every start would cost a second or two.

``python -m engine.runtime.jars`` fetches them; a second run finds them and does nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from engine.runtime.java import find_java
from engine.runtime.trust_store import PASSWORD, machine_authorities, write_trust_store
from engine.runtime.unready import Unready
from engine.settings import Settings

COORDINATE = "io.delta:delta-spark_4.2_2.13:4.4.0"

_RESOLVED = "resolved"
# Most of what Delta's descriptor names comes with Spark; these are the large ones, not worth fetching.
_SHIPPED = (
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.apache.parquet:parquet-hadoop",
    "org.apache.logging.log4j:log4j-core",
    "org.apache.logging.log4j:log4j-slf4j2-impl",
    "com.fasterxml.jackson.core:jackson-databind",
    "org.roaringbitmap:RoaringBitmap",
)
_VERSION = re.compile(r"-\d[^/]*\.jar$")
_TELLING = re.compile(
    r"UnknownHost|unresolved|not found|refused|timed out|SSL|Server access error|No space", re.I
)


class UnresolvedError(Exception):
    """Ivy could not fetch everything."""


def delta_jars(folder: Path) -> list[Path]:
    """The jars that `build_session` puts on the class path. Raises Unready when they are not there."""
    if not _is_resolved(folder):
        raise Unready(f"Delta's jars are not in {folder}.", "Fetch them, once: make setup")
    return sorted(folder.glob("*.jar"))


def fetch(folder: Path, environ: Mapping[str, str]) -> list[Path]:
    """Puts the jars into ``folder`` unless they are there; all or nothing. Raises Unready."""
    if not _is_resolved(folder):
        attempts = Retrying(
            retry=retry_if_exception_type(UnresolvedError),
            stop=stop_after_attempt(4),
            wait=wait_exponential(multiplier=2, max=20),
            reraise=True,
        )
        try:
            attempts(_resolve_into, folder, environ)
        except UnresolvedError as error:
            raise Unready(
                f"Delta's jars ({COORDINATE}) could not be fetched from Maven Central: {error}",
                f"Check the network (https_proxy is honoured) and run make setup again, or copy {folder} "
                "from a machine that has it.",
            ) from error
    return delta_jars(folder)


def _is_resolved(folder: Path) -> bool:
    stamp = folder / _RESOLVED
    if not stamp.exists():
        return False
    coordinate, *names = stamp.read_text().split()
    return coordinate == COORDINATE and all((folder / name).exists() for name in names)


def _resolve_into(folder: Path, environ: Mapping[str, str]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    shipped = {_artifact(jar.name) for jar in (_spark_home() / "jars").glob("*.jar")}
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".ivy-") as work:
        _run_ivy(Path(work), environ)
        # Ivy names them group_artifact-version.jar.
        found = Path(work, "jars").glob("*.jar")
        wanted = [jar for jar in found if _artifact(jar.name.partition("_")[2]) not in shipped]
        new = Path(work, "wanted")
        new.mkdir()
        for jar in wanted:
            shutil.move(jar, new / jar.name)
        (new / _RESOLVED).write_text("\n".join([COORDINATE, *sorted(jar.name for jar in wanted)]) + "\n")
        if folder.exists():
            shutil.rmtree(folder)
        new.rename(folder)


def _run_ivy(work: Path, environ: Mapping[str, str]) -> None:
    """Lets Spark's own resolver fetch `COORDINATE`; what it runs afterwards does nothing."""
    nothing = work / "nothing.py"
    nothing.write_text("")
    command = [str(_spark_home() / "bin" / "spark-submit"), "--master", "local[1]", "--packages", COORDINATE]
    command += ["--exclude-packages", ",".join(_SHIPPED), "--conf", f"spark.jars.ivy={work}", str(nothing)]
    java = find_java(environ)
    trust = _trust_options(work) if java.is_bundled else []
    options = " ".join([environ.get("SPARK_SUBMIT_OPTS", ""), *trust, *_proxy_options(environ)]).strip()
    environment = java.environment(environ) | {"SPARK_SUBMIT_OPTS": options}
    environment["PYSPARK_PYTHON"] = environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    try:
        done = subprocess.run(
            command,
            env=environment,
            cwd=work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=900,
        )
    except subprocess.TimeoutExpired as error:
        raise UnresolvedError("no answer within 900 s") from error
    if done.returncode != 0 or not any(Path(work, "jars").glob("io.delta_*.jar")):
        raise UnresolvedError(_telling_line(done.stdout + done.stderr))


def _trust_options(work: Path) -> list[str]:
    authorities = machine_authorities()
    if not authorities:
        return []
    store = work / "authorities.jks"
    write_trust_store(store, authorities)
    return [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={PASSWORD}"]


def _proxy_options(environ: Mapping[str, str]) -> list[str]:
    """Java does not read https_proxy."""
    options = []
    for scheme in ("http", "https"):
        value = environ.get(f"{scheme}_proxy") or environ.get(f"{scheme.upper()}_PROXY")
        proxy = urlsplit(value if value and "://" in value else f"http://{value}") if value else None
        if proxy and proxy.hostname:
            options += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port or 80}"]
    return options


def _telling_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line)]
    return (telling or lines or ["no output"])[0]


def _artifact(name: str) -> str:
    """``delta-storage`` of ``delta-storage-4.4.0.jar``."""
    return _VERSION.sub("", name)


def _spark_home() -> Path:
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise Unready("The package pyspark is missing.", "Install what is pinned: make setup")
    return Path(spec.submodule_search_locations[0])


def main() -> None:
    """Fetches the jars; exit code 1 and the reason when that fails."""
    try:
        fetch(Settings().jars, os.environ)
    except Unready as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
