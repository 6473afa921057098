"""``python -m tests.dashboard.two_pages PORT``: serves the two pages with the checks in place."""

import sys
from pathlib import Path

import streamlit as st

from dashboard import late_reruns

late_reruns.install()
st.App(Path(__file__).with_name("app.py")).run(
    config={"server.port": int(sys.argv[1]), "server.address": "127.0.0.1", "browser.gatherUsageStats": False}
)
