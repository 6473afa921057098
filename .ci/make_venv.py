"""Makes a virtual environment with pip: ``python make_venv.py FOLDER``.

Debian's python3 comes without ensurepip: then a pip of the machine serves, or one says what to install.
"""

import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path


def main(folder: str) -> None:
    """Makes ``folder`` unless it is one already; exits with a message where that cannot be done."""
    if works(folder):
        return
    if find_spec("ensurepip"):
        venv.create(folder, with_pip=True, clear=True)
        return
    venv.create(folder, with_pip=False, clear=True)
    if find_spec("pip"):
        command = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            f"{folder}/bin/python",
            "install",
            "--quiet",
            "pip",
        ]
        if subprocess.run(command).returncode == 0:
            return
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    sys.exit(
        f"This Python cannot make environments. On Debian and Ubuntu: apt-get install python{version}-venv"
    )


def works(folder: str) -> bool:
    """Whether an environment with pip and a Python that is new enough is there."""
    python = Path(folder, "bin", "python")
    question = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    return (
        python.exists()
        and subprocess.run([python, "-c", question], stderr=subprocess.DEVNULL).returncode == 0
    )


if __name__ == "__main__":
    main(sys.argv[1])
