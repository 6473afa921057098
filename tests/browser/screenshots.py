"""Pictures of every page, light and dark, over a demo that lives: ``make screenshots``.

A fresh home gets what makes pages worth looking at: a load with a burst and a pause, a burst above the
ceiling, DDL, an error that is mended, a client, a cleanup, snapshots, users. All of it is real.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from dashboard.navigation import SECTIONS
from engine.engine import Engine
from engine.settings import Settings
from tests.browser.controls import expect_settled
from tests.browser.running import DEMO, PROCESS_SECONDS, RunningHome, chromium, started_home
from tests.browser.tables import rows, select

PAGES = [page for pages in SECTIONS.values() for page in pages]
IMAGES = Path(__file__).parents[2] / "docs" / "images"
WIDTH, HEIGHT = 1280, 1000
PHONE = {"width": 390, "height": 844}
PATIENCE = 120_000
"""Milliseconds to wait for what a picture needs."""
COLOURS = 192
"""A page has few: its picture loses nothing that is seen, and two thirds of its size."""
TABLES = (
    "HumanResources.Department",
    "HumanResources.Employee",
    "Production.Product",
    "Production.ProductInventory",
    "Sales.Customer",
    "Sales.SalesOrderHeader",
    "Sales.SalesOrderDetail",
)
NET_CHANGES = """DECLARE @from binary(10) = sys.fn_cdc_get_min_lsn('Production_Product'), \
@to binary(10) = sys.fn_cdc_get_max_lsn();
EXEC sys.sp_cdc_help_jobs;
SELECT TOP 100 * FROM cdc.fn_cdc_get_net_changes_Production_Product(@from, @to, 'all with mask')
ORDER BY __$start_lsn DESC;"""


def main() -> None:
    """Makes the pictures anew."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path, default=IMAGES, help="where they go")
    arguments.add_argument("--height", type=int, default=HEIGHT, help="pixels of a page that are seen")
    given = arguments.parse_args()
    expect.set_options(timeout=PATIENCE)
    given.folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch, started_home(Path(scratch) / "home") as home:
        prepare(home)
        with steady_load(home), chromium() as browser:
            for scheme in ("light", "dark"):
                for name in PAGES:
                    take(browser, home, name, scheme, given.height, given.folder)
                take_phone(browser, home, scheme, given.folder)


def prepare(home: RunningHome) -> None:
    """Everything that happens before the first picture; some minutes."""
    for table in TABLES:
        home.run("enable", "-d", DEMO, table)
    home.sync()
    home.run("roles", "set", "ann@example.com", "operator")
    home.run("roles", "set", "bob@example.com", "viewer")
    home.run("client", "register", "warehouse", "-d", DEMO, "-c", "Sales_SalesOrderHeader")
    _load(home, 6, 20)
    home.run("collector", "collect-now")
    fail_and_mend(home)
    _load(home, 120, 6)
    home.run("collector", "collect-now")
    home.execute('ALTER TABLE "HumanResources"."Department" ADD COLUMN "CostCentre" text')
    home.run("jobs", "change", "cleanup", "-d", DEMO, "--retention", "1")
    _load(home, 8, 40)
    acknowledge(home)
    home.run("cleanup", "start", "-d", DEMO)
    _wait_for(home, "succeeded", "cleanup", "status", "-d", DEMO)
    _load(home, 3, 30)
    acknowledge(home)
    home.run("collector", "collect-now")


def _load(home: RunningHome, rate: int, seconds: int) -> None:
    home.run("demo", "--rate", str(rate), "--seconds", str(seconds), "--seed", str(rate))
    home.sync()


def fail_and_mend(home: RunningHome) -> None:
    """A conversion that rows captured before can't follow: capture stops until the table is disabled."""
    with psycopg.connect(home.dsn(), autocommit=True) as connection:
        connection.execute("CREATE TABLE note (id int PRIMARY KEY, said text)")
        home.run("enable", "-d", DEMO, "public.note")
        connection.execute("INSERT INTO note VALUES (1, 'no number')")
        home.sync()
        connection.execute("ALTER TABLE note ALTER said TYPE int USING length(said)")
        _wait_for(home, "22976", "errors", "-d", DEMO, "--format", "csv")
        home.run("disable", "-d", DEMO, "public.note")
        home.sync()
        connection.execute("DROP TABLE note")


def acknowledge(home: RunningHome) -> None:
    """The client has read all that there is."""
    engine = Engine.open(Settings(home=home.folder))
    high = engine.get_max_lsn(DEMO)
    engine.close()
    home.run("client", "ack", "warehouse", str(high), "-d", DEMO, "-c", "Sales_SalesOrderHeader")


def _wait_for(home: RunningHome, word: str, *command: str) -> None:
    """Returns when a command says the word; fails after some minutes."""
    end = time.monotonic() + PROCESS_SECONDS
    while word not in home.run(*command):
        assert time.monotonic() < end, f"{command} never says {word}"
        time.sleep(0.5)


@contextmanager
def steady_load(home: RunningHome) -> Iterator[None]:
    """Some transactions a second, while the block runs."""
    load = subprocess.Popen(home.command("demo", "--rate", "4", "--seed", "4"), stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        load.terminate()
        load.wait()


def take(browser: Browser, home: RunningHome, name: str, scheme: str, height: int, folder: Path) -> None:
    """One page in one mode."""
    path, prepare_page = VIEWS.get(name, ("", wait_for_nothing))
    page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    _open(page, home, f"/{'' if name == 'overview' else name}{path}")
    prepare_page(page)
    _save(page, folder / f"{name}_{scheme}.png")
    page.close()


def take_phone(browser: Browser, home: RunningHome, scheme: str, folder: Path) -> None:
    """The overview on a telephone."""
    page = browser.new_page(viewport=PHONE, color_scheme=scheme)  # type: ignore[arg-type]
    _open(page, home, "/")
    _save(page, folder / f"phone_{scheme}.png")
    page.close()


def _open(page: Page, home: RunningHome, path: str) -> None:
    page.set_default_timeout(PATIENCE)
    page.goto(home.url + path)
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def _save(page: Page, file: Path) -> None:
    """Once nothing is read, drawn or moves any more."""
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)  # beside all that is being read
    expect_settled(page)
    page.wait_for_load_state("networkidle")  # parts of the page are loaded when they are first needed
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    page.wait_for_function(
        "[...document.querySelectorAll('[data-testid^=stBidiComponent]')]"
        ".every(each => each.querySelector('.main-svg, .sql-editor'))"
    )
    page.mouse.move(WIDTH - 5, 5)  # off what was clicked: no hint stays open
    page.wait_for_function("document.getAnimations().every(each => each.playState !== 'running')")
    picture = Image.open(BytesIO(page.screenshot()))
    picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


def wait_for_nothing(_page: Page) -> None:
    """The page is worth a picture as it opens."""


def wait_for_charts(page: Page) -> None:
    """What was collected is read, and drawn."""
    expect(page.locator(".plot .main-svg").last).to_be_attached()


def select_newest(page: Page) -> None:
    """The first row, with what opens for it."""
    expect(rows(page).first).to_be_attached()
    select(page, rows(page).first)


def run_script(page: Page) -> None:
    """In the console: the jobs and the net changes of a table."""
    page.locator(".sql-editor:not([data-words='0'])").wait_for()
    page.get_by_role("textbox", name="T-SQL").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(NET_CHANGES)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Completed in")).to_be_attached()  # in a tab that is closed
    page.get_by_role("tab", name="Result 2").click()


VIEWS: dict[str, tuple[str, Callable[[Page], None]]] = {
    "tables": ("", select_newest),
    "changes": ("?c_ci=HumanResources_Employee&c_op=update", select_newest),
    "history": ("?h_range=now-10m", wait_for_charts),
    "console": ("", run_script),
}
"""By page: parameters of its address, and what is done there before the picture."""


if __name__ == "__main__":
    main()
