"""Makes a virtual environment with pip: ``python make_venv.py FOLDER``.

Debian's python3 comes without ensurepip: then a pip of the machine serves, or one says what to install.
"""

import subprocess
import sys
import venv
from importlib.util import find_spec


def main(folder: str) -> None:
    """Makes ``folder``; exits with a message where that cannot be done."""
    if find_spec("ensurepip"):
        venv.create(folder, with_pip=True)
        return
    venv.create(folder, with_pip=False)
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


if __name__ == "__main__":
    main(sys.argv[1])
