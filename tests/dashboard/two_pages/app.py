"""Two pages below a part with a timer, as every page of the dashboard has one."""

import time

import streamlit as st


def first() -> None:
    st.text("first")


def second() -> None:
    time.sleep(0.5)  # long enough for a tick of the first page to arrive meanwhile
    st.text("second")


pages = [st.Page(first, title="First", default=True), st.Page(second, title="Second")]
page = st.navigation(pages)


def ticking() -> None:
    st.text("tick")


ticking.__qualname__ = page.title  # known by name and place: each page has its own
st.fragment(ticking, run_every=60)()
page.run()
