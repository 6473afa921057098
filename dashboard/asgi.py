"""The dashboard as an ASGI application: Streamlit plus /api/health and Plotly's script.

Served by ``python -m dashboard``, by ``streamlit run dashboard/asgi.py`` or by any ASGI server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path

import plotly
import streamlit as st
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse
from starlette.routing import Route

from dashboard.components.live_plot import PLOTLY_ROUTE
from engine.engine import Engine

AGENT_STARTS = 10.0
"""Seconds that are left to the agent, which starts at the same time and is waited for."""

_PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
_NEEDED = (
    "pandas.io.formats.style",
    "plotly.graph_objects",
    "pyarrow.parquet",
    "dashboard.components.explorer",
)


async def health(_request: Request) -> JSONResponse:
    """Whether the server answers; says nothing of capture (that is ``highwater status``)."""
    return JSONResponse({"status": "ok", "service": "highwater dashboard"})


async def plotly_script(_request: Request) -> FileResponse:
    """Plotly from the installed package: nothing is fetched from elsewhere, nothing twice."""
    return FileResponse(
        _PLOTLY,
        media_type="text/javascript",
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )


@asynccontextmanager
async def warm(_app: st.App) -> AsyncIterator[None]:
    """Loads what the first page will need while nobody waits for it yet."""
    loading = asyncio.create_task(_load())
    yield
    loading.cancel()


async def _load() -> None:
    for module in _NEEDED:
        await asyncio.to_thread(import_module, module)
    await asyncio.sleep(AGENT_STARTS)
    await asyncio.to_thread(Engine.prepare_queries)


app = st.App(
    Path(__file__).with_name("app.py"),
    lifespan=warm,
    routes=[Route("/api/health", health), Route(PLOTLY_ROUTE, plotly_script)],
)
