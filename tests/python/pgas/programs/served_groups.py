"""Carries out plans of collectives of device arrays, which the test sends to PE 0 over a socket.

`argv`: the address of the socket. A plan is the size of a place and a list of operations, which are in
flight together. The answer is what differs from NumPy, or "".
"""

import sys
from multiprocessing.connection import Client

import numpy as np
from group_reference import WITH_PARTS, expected, host_type, input_of

import weft
import weft.pgas as pgas

ADDRESS = sys.argv[1]
KIND = "emulated"


async def device_array(values: np.ndarray, name: str) -> weft.DeviceArray:
    host = weft.DeviceArray(values.size, name, "host")
    if values.size > 0:
        np.asarray(host).view("uint8")[:] = values.view("uint8")
    array = weft.DeviceArray(values.size, name, KIND)
    await array.copy_from(host)
    return array


async def host_values(array: weft.DeviceArray, name: str) -> np.ndarray:
    found = await array.to_host()
    return np.frombuffer(found.tobytes(), host_type(name))


class Queued:
    """One operation of this member."""

    def __init__(self, group, number, operation, elements, name, reducer, root, is_in_place):
        self.group, self.operation, self.name, self.is_in_place = group, operation, name, is_in_place
        self.text = f"{number}: {operation} of {elements} {name}, {reducer}, root {root}, {is_in_place=}"
        count = elements * (group.size if operation in WITH_PARTS else 1)
        inputs = [input_of(number, rank, count, name) for rank in range(group.size)]
        self.mine = inputs[group.rank]
        self.result = expected(operation, inputs, name, reducer, root, group.rank)
        self.more = {} if operation in ("all_gather", "all_to_all") else {"root": root}
        if operation in ("reduce", "all_reduce", "reduce_scatter"):
            self.more["op"] = getattr(weft.Reducer, reducer)
        if operation not in ("broadcast", "reduce"):
            self.more.pop("root", None)
        self.array = self.out = None

    async def prepare(self):
        values = self.mine
        if self.is_in_place and self.operation == "all_gather":
            values = np.zeros(self.result.size, self.mine.dtype)
            values[self.group.rank * self.mine.size :][: self.mine.size] = self.mine
        self.array = await device_array(values, self.name)
        if not self.is_in_place and self.operation != "broadcast":
            size = self.mine.size if self.result is None else self.result.size
            self.out = await device_array(np.zeros(size, self.mine.dtype), self.name)

    def queue(self, stream):
        if self.out is not None:
            self.more["out"] = self.out
        assert getattr(self.group, self.operation)(self.array, stream=stream, **self.more) is None

    async def difference(self):
        if self.result is None:
            return ""
        found = await host_values(self.array if self.out is None else self.out, self.name)
        if self.out is None and self.operation == "reduce_scatter":
            found = np.split(found, self.group.size)[self.group.rank]
        return "" if np.array_equal(found, self.result) else f"rank {self.group.rank}, {self.text}"


async def carry_out(world, plan):
    place_bytes, operations = plan
    group = await world.device_group(KIND, place_bytes=place_bytes)
    queued = [Queued(group, number, *one) for number, one in enumerate(operations)]
    for one in queued:
        await one.prepare()
    stream = weft.Stream(KIND) if len(operations) % 2 else None
    for one in queued:
        one.queue(stream)
    await group.over()
    differences = [await one.difference() for one in queued]
    await group.close()
    everywhere = await world.allgather([one for one in differences if one])
    return "; ".join(text for texts in everywhere for text in texts)


async def main(world):
    connection = Client(ADDRESS) if world.rank == 0 else None
    while True:
        plan = await world.broadcast(connection.recv() if connection else None)
        if plan is None:
            break
        difference = await carry_out(world, plan)
        if connection:
            connection.send(difference)


pgas.run(main)
