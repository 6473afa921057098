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


@st.fragment(run_every=60)
def ticking() -> None:
    st.text("tick")


ticking()
page.run()
