"""The tour in a browser, from the first click to the last; a workload that is started and stopped."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from dashboard.tour import LESSONS
from tests.browser.controls import button, expect_settled, press
from tests.browser.running import RunningHome

pytestmark = pytest.mark.browser
OpenPage = Callable[..., Page]


def test_nine_lessons_one_after_the_other_and_back_to_the_start(open_page: OpenPage) -> None:
    page = open_page("/learn")
    for number, lesson in enumerate(LESSONS):
        expect(page.get_by_role("heading", name=f"{number + 1} of 9: {lesson.title}")).to_be_visible()
        for index, part in enumerate(lesson.parts):
            card = page.locator(f".st-key-l_part_{number}_{index}")
            press(button(card, part.action), card.get_by_text(part.check))
            expect(button(card, part.action)).to_have_count(0)
            if "fails" in lesson.title:
                expect(card.get_by_text("Msg 313", exact=False).first).to_be_visible()
        if number + 1 < len(LESSONS):
            following = page.get_by_role("heading", name=f"{number + 2} of 9")
            press(button(page, f"Next: {LESSONS[number + 1].title}"), following)
    page.get_by_text("Start over").click()
    taken_back = page.get_by_role("button", name="Take back what the tour made", exact=True, disabled=True)
    press(button(page, "Take back what the tour made"), taken_back)
    press(button(page, LESSONS[0].title), button(page, LESSONS[0].parts[0].action))
    expect_settled(page)


def test_a_workload_runs_and_is_stopped(open_page: OpenPage, running_home: RunningHome) -> None:
    page = open_page("/learn")
    page.get_by_role("tab", name="Workload").click()
    expect(page.get_by_text("EXEC highwater.demo @rate = 20, @seconds = 60, @seed = 1;")).to_be_visible()
    page.get_by_text("Mix", exact=True).click()
    button(page, "HumanResources").click()
    page.get_by_role("spinbutton", name="Burst").fill("5")
    page.get_by_role("spinbutton", name="Burst").press("Enter")
    expect(page.get_by_text("@seed = 1, @schemas = N'HumanResources', @burst = 5;")).to_be_visible()
    press(button(page, "Start"), page.get_by_text("20 transactions a second for"))
    press(button(page, "Stop"), page.get_by_text("transactions in"))
    page.get_by_role("tab", name="Glossary").click()
    expect(page.get_by_text("capture instance").first).to_be_visible()
    expect_settled(page)
