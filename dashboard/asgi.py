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
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from dashboard import late_reruns, state, undelivered
from dashboard.components.live_plot import PLOTLY_ROUTE
from dashboard.components.sql_editor import CODEMIRROR, codemirror_route
from dashboard.console import FORMATS
from dashboard.identity import LoopbackOnly
from engine.engine import Engine
from engine.errors import CdcError
from engine.runtime.login import login_secrets
from engine.settings import Settings

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
    return _script(_PLOTLY)


async def codemirror_script(_request: Request) -> FileResponse:
    """The console's editor, likewise."""
    return _script(CODEMIRROR)


def _script(path: Path) -> FileResponse:
    return FileResponse(
        path,
        media_type="text/javascript",
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )


async def console_result(request: Request) -> Response:
    """A whole result of a console, a line at a time. Its address has a token that only its tab knows."""
    given = request.path_params
    result = state.consoles().result(given["token"], given["mark"], given["number"])
    if result is None or given["form"] not in FORMATS:
        return JSONResponse({"error": "This result is gone: run the query again."}, status_code=404)
    try:
        await asyncio.to_thread(state.consoles().begin_download, given["token"])
    except CdcError as refused:
        return JSONResponse({"error": refused.line()}, status_code=403)
    name = f"result-{given['number'] + 1}.{given['form']}"
    return StreamingResponse(
        result.lines(given["form"]),
        media_type=FORMATS[given["form"]],
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )


async def download(request: Request) -> Response:
    """A whole query's file that is ready. Its address has a token that only its tab knows."""
    found = state.downloads().ready(request.path_params["token"])
    if found is None or not found.file.exists():
        return JSONResponse({"error": "This file is gone: prepare it again."}, status_code=404)
    try:
        await asyncio.to_thread(found.begin)
    except CdcError as refused:
        return JSONResponse({"error": refused.line()}, status_code=403)
    return FileResponse(
        found.file, media_type=found.mime, filename=found.name, headers={"Cache-Control": "no-store"}
    )


async def console_left(request: Request) -> Response:
    """A browser tab was closed: its console ends now, as an editor's connection does, with what was open."""
    await asyncio.to_thread(state.consoles().close, request.path_params["token"])
    return Response(status_code=204)


@asynccontextmanager
async def warm(_app: st.App) -> AsyncIterator[None]:
    """Loads what the first page will need while nobody waits for it yet."""
    loading = asyncio.create_task(_load())
    yield
    loading.cancel()
    await asyncio.to_thread(state.consoles().close_all)
    await asyncio.to_thread(state.downloads().close)


async def _load() -> None:
    for module in _NEEDED:
        await asyncio.to_thread(import_module, module)
    await asyncio.sleep(AGENT_STARTS)
    await asyncio.to_thread(Engine.prepare_queries)


late_reruns.install()
undelivered.install()
app = st.App(
    Path(__file__).with_name("app.py"),
    secrets=login_secrets(Settings().home),
    lifespan=warm,
    middleware=[Middleware(LoopbackOnly)],
    routes=[
        Route("/api/health", health),
        Route(PLOTLY_ROUTE, plotly_script),
        Route(codemirror_route(), codemirror_script),
        Route("/api/download/{token}", download),
        Route("/api/console/{token}/{mark}/{number:int}.{form}", console_result),
        Route("/api/console/{token}/leave", console_left, methods=["POST"]),
    ],
)
