"""Logging in with OpenID Connect at a provider that runs here: roles are asked for at each call."""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import URLError

import oidc_provider_mock
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE
from tests.browser.controls import button
from tests.browser.running import DEMO, PROCESS_SECONDS, RunningHome, free_port

pytestmark = pytest.mark.browser

ANN = "ann@example.com"
MALLORY = oidc_provider_mock.User(sub="mallory", claims={"email": ANN, "email_verified": False})
AUTH = """[auth]
redirect_uri = "{url}/oauth2callback"
cookie_secret = "{secret}"
client_id = "highwater"
client_secret = "hush"
server_metadata_url = "{provider}/.well-known/openid-configuration"
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """An OpenID Connect provider, where whoever says so is somebody."""
    with oidc_provider_mock.run_server_in_thread(user_claims=[MALLORY]) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.fixture(scope="module")
def guarded(running_home: RunningHome, provider: str) -> Iterator[str]:
    """Where a second dashboard of the home answers, to those who log in."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    file = running_home.folder / "secrets.toml"
    file.write_text(AUTH.format(url=url, secret=secrets.token_hex(), provider=provider))
    command = [sys.executable, "-m", "dashboard", "--home", str(running_home.folder), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(f"{url}/api/health", process)
        yield url
    finally:
        process.terminate()
        process.wait(PROCESS_SECONDS)
        file.unlink()


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PROCESS_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    pytest.fail(f"the dashboard did not answer at {url}")


@pytest.fixture
def log_in(browser: Browser, guarded: str) -> Iterator[Callable[[str], Page]]:
    """Logs somebody in, in a browser of their own; the page that they come to."""
    contexts = []

    def logged_in(subject: str) -> Page:
        context = browser.new_context(viewport={"width": 1280, "height": 1000})
        contexts.append(context)
        context.route("**/cdn.jsdelivr.net/**", lambda route: route.abort())  # the provider's style sheet
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"{guarded}/?live=2s")
        expect(page.get_by_role("link", name="Overview")).to_have_count(0)
        button(page, "Log in").click()
        page.get_by_placeholder("sub").fill(subject)
        page.get_by_role("button", name="Authorize").click()
        page.wait_for_url(f"{guarded}/**")
        return page

    yield logged_in
    for context in contexts:
        context.close()


def test_a_role_is_needed_and_holds_until_it_is_taken(
    log_in: Callable[[str], Page], running_home: RunningHome, guarded: str
) -> None:
    page = log_in(ANN)
    expect(page.get_by_role("heading", name="You have no role here")).to_be_visible()
    expect(page.get_by_text(f"highwater roles set {ANN} viewer")).to_be_visible()
    expect(page.get_by_role("link", name="Overview")).to_have_count(0)

    running_home.run("roles", "set", ANN, "viewer")
    button(page, "Try again").click()
    page.get_by_role("link", name="Tables").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Tables")
    expect(button(page, "Enable tables")).to_be_disabled()
    expect(page.get_by_text("Needs the role admin; yours is viewer.")).to_be_visible()

    running_home.run("roles", "set", ANN, "admin")
    expect(button(page, "Enable tables")).to_be_enabled()
    page.goto(f"{guarded}/settings?live=2s")
    page.get_by_role("textbox", name="User", exact=True).fill("carol@example.com")
    button(page, "Give the role").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    page.goto(f"{guarded}/activity?live=2s")
    expect(page.get_by_test_id("stCode").get_by_text("EXEC highwater.set_role")).to_be_visible()
    assert ANN in running_home.run("activity", "--limit", "1")

    running_home.run("roles", "remove", "carol@example.com")
    page.goto(f"{guarded}/activity?live=2s&a_user={ANN}")
    button(page, "Open in the console").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Console")
    editor = page.get_by_role("textbox", name="T-SQL")
    expect(editor).to_contain_text("EXEC highwater.set_role @name = N'carol@example.com'")
    page.locator(".sql-editor:not([data-words='0'])").wait_for()
    editor.click()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Completed in")).to_be_visible()
    assert "carol@example.com" in running_home.run("roles", "list")

    running_home.run("roles", "remove", ANN)
    expect(page.get_by_role("heading", name="You have no role here")).to_be_visible()
    running_home.run("roles", "remove", "carol@example.com")


def test_two_users_have_roles_and_names_of_their_own(
    log_in: Callable[[str], Page], running_home: RunningHome, guarded: str
) -> None:
    running_home.run("roles", "set", ANN, "operator")
    running_home.run("roles", "set", "bob@example.com", "viewer")
    ann, bob = log_in(ANN), log_in("bob@example.com")
    for page in (ann, bob):
        page.get_by_role("link", name="Capture").click()
        expect(page.get_by_text(f"cdc.{DEMO}_capture").first).to_be_visible()
    expect(button(ann, "Stop").first).to_be_enabled()
    expect(button(bob, "Stop").first).to_be_disabled()
    button(bob, "viewer").click()
    expect(bob.get_by_text("bob@example.com")).to_be_visible()
    button(bob, "Log out").click()
    expect(bob.get_by_role("heading", name="End Session")).to_be_visible()  # the provider's own
    bob.goto(guarded)
    expect(button(bob, "Log in")).to_be_visible()
    expect(button(ann, "operator")).to_be_visible()
    for name in (ANN, "bob@example.com"):
        running_home.run("roles", "remove", name)


def test_an_address_that_is_not_verified_is_nobodys(
    log_in: Callable[[str], Page], running_home: RunningHome
) -> None:
    running_home.run("roles", "set", ANN, "admin")
    page = log_in("mallory")
    expect(page.get_by_role("heading", name="You have no role here")).to_be_visible()
    expect(page.get_by_text("highwater roles set mallory viewer")).to_be_visible()
    running_home.run("roles", "remove", ANN)


def test_without_a_login_no_other_machine_is_served(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dashboard", "--home", str(tmp_path), "--address", "0.0.0.0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PROCESS_SECONDS, check=False)
    assert done.returncode == 1
    assert "The dashboard is not served on 0.0.0.0" in done.stderr
