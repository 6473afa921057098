"""axe-core's checks of WCAG 2.2 A and AA on every page, light and dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from dashboard.navigation import SECTIONS
from tests.browser.controls import expect_settled, open_go_to
from tests.browser.running import RunningHome

pytestmark = pytest.mark.browser
OpenPage = Callable[..., Page]

PAGES = [page for pages in SECTIONS.values() for page in pages]
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
STREAMLITS = [
    # Streamlit colours the words of code itself, by no setting: 3.8 to 1 at least.
    [".stCode .token"],
    # White on the primary colour, which on dark must also be seen as text: 3.9 to 1, where 4.5 is asked for.
    ['[data-testid="stBaseButton-primary"]'],
    # The marks of a metric's sparkline, which has a text of its own beside it.
    ['[data-testid="stMetricChart"]'],
]
"""What is not ours to mend."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_violation(open_page: OpenPage, scheme: str) -> None:
    page = _in(scheme, open_page("/?live=paused"))
    found = {name: _violations(_opened(page, name)) for name in PAGES}
    assert found == {name: [] for name in PAGES}


@pytest.fixture(scope="module")
def branch(running_home: RunningHome) -> Iterator[str]:
    """A database beside the demo, so that the Overview lists all of them."""
    name = "branch"
    running_home.new_source(name)
    yield name
    running_home.run("disconnect", name)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_list_of_all_databases_has_no_violation(open_page: OpenPage, branch: str, scheme: str) -> None:
    page = _opened(_in(scheme, open_page("/?live=paused")), "overview")
    rows = page.locator(".st-key-o_fleet tbody [role=row]")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text=branch)).to_contain_text("Not enabled")
    assert _violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_go_to_has_no_violation(open_page: OpenPage, scheme: str) -> None:
    page = _opened(_in(scheme, open_page("/?live=paused")), "cleanup")
    open_go_to(page)
    page.keyboard.type("changes")
    expect(page.get_by_role("option").first).to_be_visible()
    assert _violations(page) == []
    page.keyboard.press("Enter")
    expect(page.get_by_role("combobox", name="Which")).to_be_focused()
    assert _violations(page) == []


def _in(scheme: str, page: Page) -> Page:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    return page


def _opened(page: Page, name: str) -> Page:
    origin = page.url.split("/", 3)
    # Paused: what a timer redraws fades in, and has less contrast while it does.
    page.goto(f"{origin[0]}//{origin[2]}/{'' if name == 'overview' else name}?live=paused")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    return page


def _violations(page: Page) -> list[str]:
    expect_settled(page)
    page.wait_for_function("document.getAnimations().every(each => each.playState !== 'running')")
    context: dict[str, Any] = {"exclude": STREAMLITS}
    answer = Axe().run(page, context=context, options={"runOnly": LEVELS}).response
    return [f"{each['id']}: {node['html'][:200]}" for each in answer["violations"] for node in each["nodes"]]
