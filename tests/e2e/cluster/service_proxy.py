"""The API server's way to Services: an HTTP CONNECT proxy on a unix socket, in the place of kube-proxy.

The charts' webhook configurations stay as they are (`service`, not `url`), so that an upgrade by helm merges
with what it wrote; the server resolves the Service to its cluster address, and asks here for the way to it.
"""

import asyncio
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

Address = tuple[str, int]
_BLOCK = 2**16
_CONNECT = re.compile(rb"CONNECT ([\w.-]+):(\d+) ")


class ServiceProxy:
    """Serves in a thread of its own, for as long as the process lives."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._routes: Mapping[Address, int] = {}
        self.broken = threading.Event()
        """Set when it can't serve any more."""

    def start(self) -> None:
        """Listen on the socket."""
        self._socket.unlink(missing_ok=True)
        threading.Thread(target=self._run, name="service-proxy", daemon=True).start()

    def route(self, routes: Mapping[Address, int]) -> None:
        """Replace all routes: a Service's address and port to the port of 127.0.0.1 that answers for it."""
        self._routes = dict(routes)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self.broken.set()

    async def _serve(self) -> None:
        server = await asyncio.start_unix_server(self._answer, self._socket)
        async with server:
            await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = _CONNECT.match(await reader.readuntil(b"\r\n\r\n"))
            if request:
                await self._connect((request[1].decode(), int(request[2])), reader, writer)
            else:
                writer.write(b"HTTP/1.1 400 only CONNECT host:port is served here\r\n\r\n")
        except (OSError, asyncio.IncompleteReadError):
            pass  # the caller hung up
        finally:
            writer.close()

    async def _connect(self, target: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        local = self._routes.get(target)
        if local is None:
            writer.write(b"HTTP/1.1 503 no ready pod behind this Service\r\n\r\n")
            return await writer.drain()
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", local)
        except OSError:
            writer.write(b"HTTP/1.1 502 connection refused by the pod behind this Service\r\n\r\n")
            return await writer.drain()
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        return None


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while block := await source.read(_BLOCK):
            sink.write(block)
            await sink.drain()
    sink.close()
