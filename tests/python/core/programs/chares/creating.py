"""Creations that are awaited: creating.py MODE."""

import sys

import weft


class Picky(weft.Chare):
    def __init__(self, first, last):
        if first <= self.index <= last:
            raise ValueError(f"no element {self.index}")

    def touch(self):
        return self.index


class Slow(weft.Chare):
    def __init__(self):
        self.pe = weft.my_pe()

    def where(self):
        return self.pe

    def created_here(self, picky):
        try:
            picky.created()
        except weft.Error as error:
            return str(error)

    async def await_it(self, picky):
        try:
            await picky
        except weft.Error as error:
            return str(error)


async def error_of(awaitable):
    try:
        await awaitable
    except weft.Error as error:
        return error
    return None


async def ready():
    picky = await weft.Array(Picky, 10, args=(20, 20))
    assert await picky.touch.call() == list(range(10))
    group = await weft.Group(Slow)
    assert await group.where.call() == list(range(weft.num_pes()))
    single = await weft.Singleton(Slow, weft.num_pes() - 1)
    assert await single.where.call() == weft.num_pes() - 1
    assert await group == group
    if weft.num_pes() > 1:
        text = await group[1].await_it.call(picky)
        assert "only PE 0" in text and "Picky" in text, text


async def raises():
    for first, last in ((0, 0), (9, 9), (3, 6), (0, 9)):
        picky = weft.Array(Picky, 10, args=(first, last))
        early = picky.touch.call()
        error = await error_of(picky)
        assert isinstance(error, weft.RemoteError) and error.type_name == "ValueError", error
        assert f"no element {first}" in error.message or last > first, error
        assert "in the constructor of Picky[" in error.traceback_text, error
        text = str(await error_of(early))
        assert "the collection Picky could not be created: the constructor of Picky[" in text, text
        try:
            picky[0].touch()
        except weft.Error as refused:
            assert "could not be created" in str(refused), refused
        else:
            raise AssertionError("a call to a collection that was not created")
    await weft.Array(Picky, 10, args=(20, 20))
    await weft.quiescence()


async def later():
    """Futures of creations, awaited when the constructors have long returned."""
    for num_turns in (0, 1, 50):
        futures = [
            weft.Array(Picky, 10, args=(20, 20)).created(),
            weft.CollectionProxy.created(weft.Group(Slow)),
            weft.Singleton(Slow).collection.created(),
            weft.Array(Picky, 10, args=(4, 4)).created(),
        ]
        for _ in range(num_turns):
            await weft.yield_now()
        picky = await futures[0]
        assert await picky.touch.call() == list(range(10))
        assert await (await futures[1]).where.call() == list(range(weft.num_pes()))
        assert len(await futures[2]) == 1
        error = await error_of(futures[3])
        assert isinstance(error, weft.RemoteError) and "no element 4" in error.message, error
    await weft.gather(weft.Group(Slow).created(), weft.Array(Slow, 3).created())
    if weft.num_pes() > 1:
        text = await (await weft.Group(Slow))[1].created_here.call(picky)
        assert "only PE 0" in text, text


async def dropped():
    weft.Array(Picky, 10, args=(9, 9)).created()
    await weft.sleep(10)


async def unawaited():
    weft.Array(Picky, 10, args=(9, 9))
    await weft.sleep(10)


weft.run(globals()[sys.argv[1]])
print("all checked")
