"""``python -m benchmarks.page_scripts --home FOLDER``: processor seconds that a page's script takes.

FOLDER is a home that runs, as `benchmarks.large_home` made it. Each page is run whole (a tick runs the parts
of it that tick, so it takes less) by Streamlit's own runner in this process, over a picture at hand; then
the picture itself is taken, which happens once each two seconds for all who look. Processor seconds of the
threads that do it, median of runs: they say the same however busy the machine is.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from streamlit.testing.v1 import AppTest

from dashboard import state
from dashboard.navigation import SECTIONS

APP = Path(__file__).parents[1] / "dashboard" / "app.py"
PATIENCE = 300


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    os.environ["HIGHWATER_HOME"] = str(arguments.home.resolve())
    test = AppTest.from_file(str(APP), default_timeout=PATIENCE).run()
    state.feed().close()  # nobody else works in this process from here on
    print(f"the picture of all databases: {_picture(arguments.runs):.3f} s", flush=True)
    for pages in SECTIONS.values():
        for name, (title, _) in pages.items():
            print(f"{title}: {_page(test, name, arguments.runs):.3f} s", flush=True)
    state.home_engine().close()
    return 0


def _picture(runs: int) -> float:
    return median(_used(state.feed().refresh) for _ in range(runs))


def _page(test: AppTest, name: str, runs: int) -> float:
    test.switch_page(f"../pages/{name}.py").run()
    for operation in tuple(state.all_operations()._operations.values()):
        operation.wait(PATIENCE)
    test.run()
    return median(_used(test.run) for _ in range(runs))


def _used(call: Callable[[], object]) -> float:
    before = time.process_time()
    call()
    return time.process_time() - before


if __name__ == "__main__":
    sys.exit(main())
