"""Carries out plans of random operations on global arrays, which the test sends to PE 0 over a socket.

`argv`: the kind of the memory, the address of the socket. Each plan is compared with NumPy. The answer
is what differs, or "".
"""

import sys
from multiprocessing.connection import Client

import numpy as np

import weft
import weft.pgas as pgas

KIND, ADDRESS = sys.argv[1:3]


class Model:
    """Global arrays, and NumPy arrays that hold what they should."""

    def __init__(self, arrays, dtype):
        self.arrays = arrays
        self.expected = [np.zeros(array.shape, dtype) for array in arrays]
        self.random = np.random.default_rng(0)

    def values(self, shape):
        return self.random.integers(0, 2**31, shape).astype(self.expected[0].dtype)

    async def step(self, operation, which, key, *more):
        array, expected = self.arrays[which], self.expected[which]
        if operation == "get":
            got = await array.get(key)
            return np.array_equal(got, expected[key])
        if operation == "put":
            values = self.values(expected[key].shape)
            await array.put(key, values)
            expected[key] = values
        elif operation == "add":
            before = await array.fetch_add(key, 5)
            if before != expected[key]:
                return False
            expected[key] += 5
        elif operation == "copy":
            other, other_key = more
            if which == other and np.shares_memory(expected[key], expected[other_key]):
                return True  # overlap is refused; misuse.py has that
            await pgas.copy(array[key], self.arrays[other][other_key])
            self.expected[other][other_key] = expected[key]
        elif operation == "out":
            out = np.zeros(tuple(2 * extent for extent in expected[key].shape), expected.dtype)
            part = out[(*[slice(None, None, -2)] * out.ndim, ...)]  # a view also without axes
            await array.get(key, out=part)
            return np.array_equal(part, expected[key]) and np.count_nonzero(out) <= part.size
        return True

    async def first_difference(self):
        for which, (array, expected) in enumerate(zip(self.arrays, self.expected, strict=True)):
            if not np.array_equal(await array.get(), expected):
                return f"array {which} differs in the end"
        return ""


async def carry_out(world, shapes, dtype, steps) -> str:
    """Collective; the answer is that of rank 0."""
    arrays = [await pgas.make_array(shape, dtype, kind=KIND) for shape in shapes]
    answer = ""
    if world.rank == 0:
        model = Model(arrays, dtype)
        for array in arrays:
            await array.put(..., 0)
        for step in steps:
            try:
                is_right = await model.step(*step)
            except weft.Error as error:
                answer = f"{step}: {error}"
                break
            if not is_right:
                answer = f"wrong after {step}"
                break
        answer = answer or await model.first_difference()
    for array in arrays:
        await array.release()
    return answer


async def main(world):
    client = Client(ADDRESS) if world.rank == 0 else None
    while True:
        plan = await world.broadcast(client.recv() if client else None)
        if plan is None:
            return
        answer = await carry_out(world, *plan)
        if client:
            client.send(answer)


weft.pgas.run(main)
