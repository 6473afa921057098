"""``python -m dashboard --home DIR --port N``: serves the dashboard of one home, on 127.0.0.1 by default."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from engine.runtime.login import check_address
from engine.runtime.unready import Unready

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Serves until stopped. The folder changes to the project's, where Streamlit finds its theme."""
    parser = argparse.ArgumentParser(prog="python -m dashboard", description="Serve the dashboard of a home.")
    parser.add_argument("--home", type=Path, default=Path(os.environ.get("HIGHWATER_HOME", "var")))
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--address", default="127.0.0.1")
    arguments = parser.parse_args()
    home = arguments.home.resolve()
    try:
        check_address(home, arguments.address)
    except Unready as unready:
        sys.exit(str(unready))
    os.environ["HIGHWATER_HOME"] = str(home)
    os.chdir(ROOT)

    from dashboard.asgi import app  # after the environment says which home it is

    app.run(config={"server.port": arguments.port, "server.address": arguments.address})


if __name__ == "__main__":
    main()
