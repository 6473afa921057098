"""A network between an agent and its source that can be cut, stalled and slowed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from engine.runtime.ports import free_port

SECONDS = 30
PIECE = 4096


class TcpProxy:
    """Forwards connections to a Unix socket, as long as it is told to."""

    def __init__(self, socket: Path) -> None:
        self.port = free_port()
        self._socket = socket
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.StreamWriter] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._is_cut = False
        self._seconds_a_piece = 0.0
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._forward, "127.0.0.1", self.port))

    def cut(self) -> None:
        """Ends every connection and refuses new ones."""
        self._run(self._cut())

    def stall(self) -> None:
        """Takes everything and passes nothing on, either way."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def slow(self, seconds_a_piece: float) -> None:
        """Passes four kilobytes on in so many seconds."""
        self._seconds_a_piece = seconds_a_piece

    def mend(self) -> None:
        """Passes on again, what was held back first."""
        self._is_cut, self._seconds_a_piece = False, 0.0
        self._loop.call_soon_threadsafe(self._flows.set)

    def close(self) -> None:
        self.mend()
        self.cut()
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    async def _cut(self) -> None:
        self._is_cut = True
        for writer in tuple(self._open):
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        there, back = await asyncio.open_unix_connection(self._socket)
        self._open |= {writer, back}
        await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        self._open -= {writer, back}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(PIECE):
                await self._flows.wait()
                await asyncio.sleep(self._seconds_a_piece)
                writer.write(piece)
                await writer.drain()
        writer.close()


@contextmanager
def tcp_proxy(socket: Path) -> Iterator[TcpProxy]:
    """One that ends with the block."""
    proxy = TcpProxy(socket)
    try:
        yield proxy
    finally:
        proxy.close()
