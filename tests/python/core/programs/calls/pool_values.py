"""Tasks of a chunk share nothing, and a closed pool leaves nothing behind; checks itself."""

import weft
from weft import _core
from weft._pool.members import Slots

CACHE = [0]


def nested(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


def same(value):
    return value


def change(values):
    values.append(len(values))
    return values


def both(first, second):
    first.append(1)
    return second


def cached(number):
    CACHE[0] = number
    return CACHE


class User(weft.Chare):
    async def use(self, pool):
        return await pool.map(change, [[], [1]])

    async def use_closed(self, pool):
        try:
            await pool.map(change, [[]])
        except weft.Error as error:
            return str(error)
        return "no error"


async def main():
    shared = [5]
    async with weft.Pool() as pool:
        for chunksize in (1, 4):
            results = await pool.map(change, [shared] * 4, chunksize=chunksize)
            assert results == [[5, 1]] * 4 and shared == [5], results
            results[0].append("own")
            assert results[1] == [5, 1]
            # The parts of one item are one value.
            assert await pool.starmap(both, [(shared, shared)] * 4, chunksize=chunksize) == [[5, 1]] * 4
            deep = [nested(depth) for depth in range(28, 37)]
            assert await pool.map(same, deep, chunksize=chunksize) == deep
            kept = await pool.map(cached, range(4), chunksize=chunksize)
            assert len({id(one) for one in kept}) == 4
    users = weft.Group(User)
    homes = set()
    for _ in range(3):
        pool = weft.Pool()
        homes.add(pool._place[0])
        assert await users.use.call(pool) == [[[0], [1, 1]]] * weft.num_pes()
        copy = _core._decode(_core._encode(pool))
        await pool.close()
        assert not Slots.known
        assert "closed" in await users[weft.num_pes() - 1].use_closed.call(copy)
    assert len(homes) == 1, "one for all pools of the PE"
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
