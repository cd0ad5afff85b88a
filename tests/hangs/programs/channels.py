"""Programs of chares that wait for messages of each other: see cases.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import right, run_all, wrong

import weft

LARGE = 1 << 20  # sent in place
KIND = "emulated"
LATE_S = 1.0
ALONE = "Cell[1] waits for nothing, and Cell[0] waits for it"
CYCLE = "Cell[0] waits for Cell[1], and Cell[1] for Cell[0]"


def landings() -> list[weft.DeviceArray]:
    return [weft.DeviceArray(3, float, KIND) for _ in range(2)]


class Cell(weft.Chare):
    def other(self) -> Any:
        return self.proxy[1 - self.index]

    async def receive_alone(self) -> None:
        channel = weft.Channel(self, self.other())
        if self.index == 0:
            await channel.recv(np.empty(4))

    async def send_large_first(self) -> None:
        channel = weft.Channel(self, self.other())
        await channel.send(np.zeros(LARGE))
        await channel.recv(np.empty(LARGE))

    async def send_large_object_first(self) -> None:
        channel = weft.Channel(self, self.other())
        await channel.send_object(np.zeros(LARGE))
        await channel.recv_object()

    async def receive_first(self) -> None:
        channel = weft.Channel(self, self.other())
        await channel.recv(np.empty(4))
        await channel.send(np.zeros(4))

    async def use_other_ids(self) -> None:
        await weft.Channel(self, self.other(), id=self.index).recv(np.empty(1))

    async def take_ids_in_other_orders(self) -> None:
        first = weft.Channel(self, self.other(), id=self.index)
        second = weft.Channel(self, self.other(), id=1 - self.index)
        await first.recv(np.empty(1))
        second.send(np.zeros(1))
        await second.recv(np.empty(1))

    async def receive_around(self, count: int) -> None:
        left = weft.Channel(self, self.proxy[(self.index - 1) % count])
        right = weft.Channel(self, self.proxy[(self.index + 1) % count])
        await left.recv(np.empty(2))
        await right.send(np.zeros(2))

    async def pass_along(self, count: int) -> None:
        """A pipeline: the first one forgets to send."""
        if self.index > 0:
            await weft.Channel(self, self.proxy[self.index - 1]).recv(np.empty(2))
        if self.index + 1 < count:
            following = weft.Channel(self, self.proxy[self.index + 1])
            if self.index > 0:
                await following.send(np.zeros(2))

    async def receive_from_itself(self) -> None:
        await weft.Channel(self, self.proxy[self.index]).recv(np.empty(1))

    async def receive_too_often(self) -> None:
        channel = weft.Channel(self, self.other())
        if self.index == 0:
            channel.send(np.zeros(1))
        else:
            for _ in range(2):
                await channel.recv(np.empty(1))

    async def receive_object(self) -> None:
        channel = weft.Channel(self, self.other())
        if self.index == 0:
            await channel.recv_object()

    async def send_unread(self) -> None:
        channel = weft.Channel(self, self.other())
        if self.index == 0:
            await channel.send(np.zeros(LARGE))

    async def wait_for_several(self) -> None:
        channel = weft.Channel(self, self.other())
        if self.index == 0:
            sent = self.other().echo.call(1)
            await weft.gather(sent, channel.recv(np.empty(3)))

    def echo(self, value: int) -> int:
        return value

    async def nested(self) -> None:
        await self.inner(weft.Channel(self, self.other()))

    async def inner(self, channel: weft.Channel) -> None:
        if self.index == 0:
            await channel.recv(np.empty(5))

    async def wait_for_first(self) -> None:
        channels = [weft.Channel(self, self.other(), id=number) for number in range(2)]
        if self.index == 0:
            await weft.wait([channel.recv(np.empty(6)) for channel in channels], first=True)

    async def take_as_completed(self) -> None:
        channels = [weft.Channel(self, self.other(), id=number) for number in range(2)]
        if self.index == 1:
            channels[0].send(np.zeros(7))
            return
        async for _ in weft.as_completed([channel.recv(np.empty(7)) for channel in channels]):
            pass

    async def connect_alone(self) -> None:
        if self.index == 0:
            await weft.QueuedChannel(self, self.other(), landings()).connect()

    # --- Right ones
    async def receive_late(self) -> None:
        channel = weft.Channel(self, self.other())
        if self.index == 0:
            await channel.recv(np.empty(4))
        else:
            await weft.sleep(LATE_S)
            await channel.send(np.zeros(4))

    async def take_large_late(self) -> None:
        channel = weft.Channel(self, self.other())
        if self.index == 0:
            await channel.send(np.zeros(LARGE))
        else:
            await weft.sleep(LATE_S)
            await channel.recv(np.empty(LARGE))

    async def make_channel_late(self) -> None:
        if self.index == 0:
            await weft.Channel(self, self.other()).recv(np.empty(4))
        else:
            await weft.sleep(LATE_S)
            await weft.Channel(self, self.other()).send(np.zeros(4))

    async def take_object_late(self) -> None:
        channel = weft.Channel(self, self.other())
        if self.index == 0:
            await channel.recv_object()
        else:
            await weft.sleep(LATE_S)
            await channel.send_object({"late": 1})

    async def slow_pipeline(self, count: int) -> None:
        if self.index > 0:
            await weft.Channel(self, self.proxy[self.index - 1]).recv(np.empty(2))
        await weft.sleep(LATE_S / 2)
        if self.index + 1 < count:
            await weft.Channel(self, self.proxy[self.index + 1]).send(np.zeros(2))

    async def connect_late(self) -> None:
        channel = weft.QueuedChannel(self, self.other(), landings())
        if self.index == 1:
            await weft.sleep(LATE_S)
        await channel.connect()
        if self.index == 1:
            await weft.sleep(LATE_S)
        await channel.close()

    async def give_up_receives(self) -> None:
        channel = weft.Channel(self, self.other())
        try:
            async with weft.timeout(LATE_S):
                await channel.recv(np.empty(4))
        except TimeoutError:
            await channel.send(np.zeros(4))


def cells(count: int = 2) -> Any:
    return weft.Array(Cell, count)


@wrong(ALONE, "recv of 32 bytes from Cell[1], channel id 0")
async def receive_alone() -> None:
    await cells().receive_alone.call()


@wrong(CYCLE, "which no recv has taken")
async def send_large_first() -> None:
    await cells().send_large_first.call()


@wrong(CYCLE, "Cell[0].send_large_object_first (channels.py:")
async def send_large_object_first() -> None:
    await cells().send_large_object_first.call()


@wrong(CYCLE, "channels.py:")
async def receive_first() -> None:
    await cells().receive_first.call()


@wrong(CYCLE, "channel id 0, which it has not made")
async def use_other_ids() -> None:
    await cells().use_other_ids.call()


@wrong(CYCLE, "recv of 8 bytes from Cell[1], channel id 0, and 1 like it")
async def take_ids_in_other_orders() -> None:
    await cells().take_ids_in_other_orders.call()


@wrong("Cell[0] waits for Cell[2], Cell[2] for Cell[1], and Cell[1] for Cell[0]")
async def receive_around() -> None:
    await cells(3).receive_around.call(3)


@wrong("Cell[0] waits for Cell[3], Cell[3] for Cell[2], Cell[2] for Cell[1], and Cell[1] for Cell[0]", pes=4)
async def receive_around_four() -> None:
    await cells(4).receive_around.call(4)


@wrong("Cell[0] waits for nothing, and Cell[1] waits for it", "Cell[2].pass_along (", pes=4)
async def pass_along() -> None:
    await cells(4).pass_along.call(4)


@wrong("Cell[0] waits for itself")
async def receive_from_itself() -> None:
    await cells(1).receive_from_itself.call()


@wrong("Cell[0] waits for nothing, and Cell[1] waits for it", "recv of 8 bytes")
async def receive_too_often() -> None:
    await cells().receive_too_often.call()


@wrong(ALONE, "Cell[0].receive_object", "a recv from Cell[1]")
async def receive_object() -> None:
    await cells().receive_object.call()


@wrong(ALONE, "a send to Cell[1], channel id 0, which no recv")
async def send_unread() -> None:
    await cells().send_unread.call()


@wrong(
    ALONE,
    "recv of 24 bytes from",
    "Cell[0].wait_for_several (",
)
async def wait_for_several() -> None:
    await cells().wait_for_several.call()


@wrong(ALONE, "recv of 40 bytes from Cell[1]", "Cell[0].nested (")
async def nested() -> None:
    await cells().nested.call()


@wrong(
    ALONE,
    "recv of 48 bytes from Cell[1], channel id 0; recv of",
)
async def wait_for_first() -> None:
    await cells().wait_for_first.call()


@wrong(ALONE, "recv of 56 bytes from Cell[1], channel id 1")
async def take_as_completed() -> None:
    await cells().take_as_completed.call()


@wrong("Cell[0].connect_alone (channels.py:", "an operation that is not over")
async def connect_alone() -> None:
    await cells().connect_alone.call()


@right()
async def receive_late() -> None:
    await cells().receive_late.call()


@right()
async def take_large_late() -> None:
    await cells().take_large_late.call()


@right()
async def make_channel_late() -> None:
    await cells().make_channel_late.call()


@right()
async def take_object_late() -> None:
    await cells().take_object_late.call()


@right(pes=4)
async def slow_pipeline() -> None:
    await cells(4).slow_pipeline.call(4)


@right()
async def connect_late() -> None:
    await cells().connect_late.call()


@right()
async def give_up_receives() -> None:
    await cells().give_up_receives.call()


if __name__ == "__main__":
    run_all()
