"""Reductions of large arrays, which are merged in parts where possible; checks itself against NumPy."""

import functools

import numpy as np

import weft

SEED = 20261126
LARGE_BYTES = 256 << 10
SIZES = [1000, 8 << 10, 16 << 10, 40_000, LARGE_BYTES, (2 << 20) + 7]  # about those where the way changes
COUNT = LARGE_BYTES // 8 + 13
UFUNCS = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}
DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "f2", "c16", "?"]


def values_of(index, dtype, shape=(COUNT,)):
    random = np.random.default_rng([SEED, index])
    if dtype[0] in "fc":
        return random.integers(-2, 3, shape).astype(dtype)  # exact in any order
    return random.integers(0, 256, shape).astype(dtype)


def merged(parts, reducer):
    if parts[0].dtype == bool and reducer.name in ("sum", "product"):  # 0 and 1, as for numpy.sum
        parts = [part.astype("int64") for part in parts]
    with np.errstate(over="ignore"):
        return functools.reduce(UFUNCS[reducer.name], parts)


class Part(weft.Chare):
    async def expect(self, mine, parts, reducer):
        before = mine.copy()
        total = await self.allreduce(mine, reducer)
        expected = merged(parts, reducer)
        assert total.dtype == expected.dtype and total.shape == expected.shape, (total.dtype, total.shape)
        np.testing.assert_array_equal(total, expected)
        np.testing.assert_array_equal(mine, before)
        total[...] = 0  # each element has an array of its own

    async def all_types(self, size):
        for dtype in DTYPES:
            for reducer in (weft.Reducer.sum, weft.Reducer.product, weft.Reducer.min, weft.Reducer.max):
                if dtype == "c16" and reducer.name in ("min", "max"):
                    continue
                shape = (LARGE_BYTES // np.dtype(dtype).itemsize + 13,)
                parts = [values_of(index, dtype, shape) for index in range(size)]
                await self.expect(parts[self.index], parts, reducer)

    async def sizes(self, size):
        for size_bytes in SIZES:
            for dtype in ("u1", "f8"):
                shape = (size_bytes // np.dtype(dtype).itemsize,)
                parts = [values_of(index, dtype, shape) for index in range(size)]
                await self.expect(parts[self.index], parts, weft.Reducer.sum)

    def give(self, count, dtype, reducer, target):
        self.contribute(values_of(self.index, dtype, (count,)), reducer, target)

    async def shapes(self, size):
        shape = (300, 201)
        parts = [values_of(index, "f8", shape) for index in range(size)]
        await self.expect(parts[self.index], parts, weft.Reducer.sum)
        await self.expect(np.asfortranarray(parts[self.index]), parts, weft.Reducer.sum)
        # Some in Fortran order, and some not contiguous: their elements are not at the same places.
        mine = np.asfortranarray(parts[self.index]) if self.index % 2 else parts[self.index]
        await self.expect(mine, parts, weft.Reducer.sum)
        wide = np.repeat(parts[self.index], 2, axis=1)
        await self.expect(wide[:, ::2], parts, weft.Reducer.max)

    async def mixed_types(self, size):
        # The arrays of COUNT elements are large only if they are of float64.
        for count in (COUNT, LARGE_BYTES):
            parts = [values_of(index, "i1" if index % 2 else "f8", (count,)) % 4 for index in range(size)]
            await self.expect(parts[self.index], parts, weft.Reducer.sum)

    async def not_a_number(self, size):
        values = np.full(COUNT, float(self.index))
        values[self.index] = np.nan
        for reducer in (weft.Reducer.min, weft.Reducer.max, weft.Reducer.sum):
            total = await self.allreduce(values, reducer)
            assert np.isnan(total[:size]).all() and not np.isnan(total[size:]).any()

    async def logical(self, size):
        values = np.arange(COUNT) % (self.index + 2)
        total = await self.allreduce(values, weft.Reducer.logical_or)
        assert total.dtype == bool
        expected = functools.reduce(np.logical_or, [np.arange(COUNT) % (i + 2) for i in range(size)])
        np.testing.assert_array_equal(total, expected)

    async def lists(self, size):
        total = await self.allreduce([self.index] * 40_000, weft.Reducer.sum)
        assert total == [sum(range(size))] * 40_000
        # A list beside arrays.
        mine = np.full(40_000, 1.0) if self.index else [1.0] * 40_000
        total = await self.allreduce(mine, weft.Reducer.sum)
        assert len(total) == 40_000 and set(total) == {float(size)}

    def move(self, pe):
        self.migrate(pe)


async def check_targets(parts, size):
    for size_bytes in SIZES:
        for dtype, reducer in (("u1", weft.Reducer.sum), ("f8", weft.Reducer.max), ("f2", weft.Reducer.sum)):
            count = size_bytes // np.dtype(dtype).itemsize
            target = weft.Future()
            parts.give(count, dtype, reducer, target)
            expected = merged([values_of(index, dtype, (count,)) for index in range(size)], reducer)
            total = await target
            assert total.dtype == expected.dtype
            np.testing.assert_array_equal(total, expected)


async def check(parts, size):
    await check_targets(parts, size)
    for method in ("all_types", "sizes", "shapes", "mixed_types", "not_a_number", "logical", "lists"):
        await getattr(parts, method).call(size)


async def main():
    num_pes = weft.num_pes()
    await check(weft.Group(Part), num_pes)
    # Elements that move: several on each PE, then none on most.
    size = 2 * num_pes + 1
    parts = weft.Array(Part, size)
    await parts.shapes.call(size)
    await check_targets(parts, size)
    for index in range(size):
        parts[index].move(index % max(1, num_pes - 1))
    await weft.quiescence()
    await check_targets(parts, size)
    await parts.shapes.call(size)
    await parts.mixed_types.call(size)
    for index in range(size):
        parts[index].move(num_pes - 1)
    await weft.quiescence()
    await parts.shapes.call(size)
    await parts.mixed_types.call(size)
    print("all checked")


weft.run(main)
