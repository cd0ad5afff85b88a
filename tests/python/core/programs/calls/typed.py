"""What type checkers know of a program; also runs. See test_types.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import assert_type

import weft


def double(array: np.ndarray[Any, Any]) -> None:
    array *= 2


class Block(weft.Chare):
    def __init__(self, size: int) -> None:
        self.size = size
        self.stored = weft.DeviceArray(size, float, "emulated:0")

    @weft.post_entry("store")
    def post_store(self, array: weft.ReceiveBuffer) -> None:
        assert_type(array.shape, tuple[int, ...])
        array.into(self.stored)

    async def store(self, array: weft.DeviceArray) -> Any:
        host = np.zeros(array.shape)
        host[:] = weft.DeviceArray(array.shape, float, "host")
        return (await array.to_host()).tolist()

    async def device_swap(self, peer: weft.ElementProxy) -> Any:
        stream = weft.Stream("emulated")
        array = weft.DeviceArray((self.size,), np.float64, stream.kind)
        assert_type(await array.copy_from(np.ones(self.size), stream=stream), weft.DeviceArray)
        weft.emulated.launch(double, array, stream=stream)
        assert_type(await weft.stream_done(stream), None)
        channel = weft.Channel(self, peer, id=4)
        channel.send(array.on(stream))
        received = await channel.recv(into=array.reshape(self.size))
        assert_type(received, weft.DeviceArray)
        sending = peer.store.send(weft.nocopy(received))
        assert_type(sending, weft.Operation[None])
        sending.then(lambda _: None)
        return await peer.store.call(received[1:])

    def names(self) -> str:
        device = weft.device("emulated")
        assert_type(device, weft.Device)
        assert_type(device.kind, str)
        assert_type(device.index, int)
        transposed: np.ndarray[Any, Any] = np.ones((2, 3)).T
        assert_type(weft.pack(transposed), np.ndarray[Any, Any])
        assert_type(weft.pack(self.stored), weft.DeviceArray)
        return str(device)

    async def talk(self, peer: weft.ElementProxy, values: weft.Future[list[Any]]) -> Any:
        channel = weft.Channel(self, peer, id=5)
        sending = channel.send_object({"size": self.size})
        assert_type(sending, weft.Operation[None])
        values.set(await channel.recv_object())
        assert_type(await self.allreduce(), None)
        target = peer.get_sum.bind("sum", self.size)
        assert_type(target, weft.EntryMethod)
        self.contribute(1, weft.Reducer.sum, target)
        self.contribute(target=self.proxy.nothing)
        self.contribute(None, None, weft.Future())
        return target

    def get_sum(self, name: str, size: int, total: int) -> None:
        assert (name, size, total) == ("sum", self.size, 2)

    def nothing(self) -> None:
        pass

    @weft.when(lambda self, size: size == self.size)
    def sized(self, size: int, text: str = "") -> str:
        return text

    def call_sized(self) -> None:
        assert_type(self.sized(self.size, text="x"), str)

    def get_size(self) -> int:
        return self.size

    async def swap(self, peer: weft.ElementProxy) -> float:
        channel = weft.Channel(self, peer, id=3)
        channel.send(np.ones(self.size))
        received = await channel.recv(into=np.zeros(self.size))
        assert_type(received.sum(), Any)
        return float(await self.allreduce(received.sum(), weft.Reducer.sum))


async def follow(operation: weft.Operation[None], future: weft.Future[int]) -> int:
    assert_type(await weft.as_asyncio(operation), None)
    size = await weft.as_asyncio(future)
    assert_type(size, int)
    return size


async def main() -> int:
    blocks = weft.Array(Block, (1, 2), args=(3,), map="round_robin")
    assert_type(blocks, weft.Array[Block])
    calls = [blocks[0, 0].swap.call(blocks[0, 1]), blocks[0, 1].swap.call(blocks[0, 0])]
    assert [await call for call in calls] == [6.0, 6.0]
    values = weft.Future(2)
    assert_type(values, weft.Future[list[Any]])
    made = blocks.created()
    assert_type(await made, weft.Array[Block])
    await weft.gather(*[blocks[0, i].talk.call(blocks[0, 1 - i], values) for i in range(2)])
    assert await values == [{"size": 3}] * 2
    swaps = [blocks[0, 0].device_swap.call(blocks[0, 1]), blocks[0, 1].device_swap.call(blocks[0, 0])]
    assert [len(await swap) for swap in swaps] == [3, 3]
    future: weft.Future[int] = weft.Future()
    future.set(5)
    assert_type(await future, int)
    assert_type(await weft.sleep(0), None)
    assert_type(await weft.yield_now(), None)
    assert_type(weft.progress(), bool)
    assert_type(weft.__version__, str)
    assert await weft.asyncio_future(follow(blocks[0, 0].get_size.send(), blocks[0, 0].get_size.call())) == 3
    return await future


assert_type(weft.run(main), int | None)
