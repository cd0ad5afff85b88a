"""A service: an HTTP server of asyncio whose handlers call chares on all PEs.

    weft run -n 2 examples/21_service/service.py

The server runs in an event loop on a thread beside PE 0. A handler awaits calls of chares as it awaits
sockets: many requests are under way at a time, and each of them waits for at most one second.
"""

from __future__ import annotations

import asyncio
import json
import zlib

import weft


class Store(weft.Chare):
    """Some of the keys."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def put(self, key: str, value: str) -> int:
        self.values[key] = value
        return len(self.values)

    def get(self, key: str) -> str | None:
        return self.values.get(key)


async def answer(stores: weft.CollectionProxy, path: str) -> tuple[int, object]:
    """`/key` reads, `/key/value` writes."""
    _, key, *value = path.split("/")
    store = stores[zlib.crc32(key.encode()) % len(stores)]
    if value:
        return 200, await asyncio.wait_for(store.put.call(key, value[0]), 1)
    found = await asyncio.wait_for(store.get.call(key), 1)
    return (200, found) if found is not None else (404, f"no key {key}")


async def handle(
    stores: weft.CollectionProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    path = (await reader.readline()).decode().split()[1]
    while (await reader.readline()).strip():
        pass
    try:
        status, content = await answer(stores, path)
    except asyncio.TimeoutError:
        status, content = 504, "the chare did not answer in time"
    except weft.RemoteError as error:
        status, content = 500, f"{error.type_name}: {error.message}"
    body = json.dumps(content).encode()
    writer.write(f"HTTP/1.1 {status} \r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
    writer.close()


async def request(port: int, path: str) -> str:
    """A client, for this example."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return f"{head.split()[1]} {body}"


async def serve(stores: weft.CollectionProxy) -> list[str]:
    """In the event loop. A service that goes on would await server.serve_forever()."""
    server = await asyncio.start_server(lambda *ends: handle(stores, *ends), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        await asyncio.gather(*[request(port, f"/colour{i}/{i}") for i in range(20)])
        return await asyncio.gather(request(port, "/colour7"), request(port, "/colour20"))


async def main() -> None:
    stores = weft.Array(Store, 4)
    for line in await weft.asyncio_future(serve(stores)):
        print(line)


weft.run(main)
