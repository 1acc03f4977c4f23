"""A TCP proxy that can cut every connection and refuse new ones: a bad network in front of a real server."""

import asyncio
import contextlib
import urllib.parse
from collections.abc import AsyncIterator


class LossyProxy:
    """Use `LossyProxy.before(url)`; `url` is then where clients connect instead."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._open: set[asyncio.StreamWriter] = set()
        self._blocked = False
        self.url = ""
        self.cut_connections = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def before(cls, url: str) -> AsyncIterator["LossyProxy"]:
        parts = urllib.parse.urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        proxy = cls(parts.hostname, parts.port)
        server = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
        proxy.url = f"{parts.scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield proxy
        finally:
            proxy.cut()
            server.close()
            await server.wait_closed()

    def cut(self) -> None:
        """Every connection breaks now."""
        for writer in self._open:
            self.cut_connections += 1
            writer.transport.abort()
        self._open.clear()

    def block(self) -> None:
        """Cuts, and lets nobody in until `unblock`."""
        self._blocked = True
        self.cut()

    def unblock(self) -> None:
        self._blocked = False

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._blocked:
            writer.transport.abort()
            return
        self._open.add(writer)
        there, back = await asyncio.open_connection(self._host, self._port)
        if writer.transport.is_closing():  # cut in the meantime
            back.transport.abort()
            return
        self._open.add(back)
        try:
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        finally:
            self._open -= {writer, back}

    @staticmethod
    async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(1 << 16):
                writer.write(chunk)
                await writer.drain()
        writer.transport.abort()
