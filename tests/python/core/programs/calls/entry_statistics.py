"""Entry methods of all sorts, for `weft run --stats`, which counts them."""

import weft


class Worker(weft.Chare):
    def __init__(self):
        self.gate = weft.Future()

    def quick(self, number, *, twice=False):
        return number * 2 if twice else number

    def fail(self):
        raise ValueError("as it should")

    async def wait(self):
        await self.gate

    async def fail_later(self):
        await weft.yield_now()
        raise ValueError("as it should")

    def open(self):
        self.gate.set()

    def summed(self, value):
        pass

    def contribute_one(self):
        self.contribute(1, weft.Reducer.sum, self.proxy[0].summed)


async def failure_of(call):
    try:
        await call
    except weft.RemoteError as error:
        return error.message


async def main():
    workers = weft.Array(Worker, 2, map="round_robin")
    for worker in workers:
        for number in range(3):
            assert await worker.quick.call(number, twice=True) == number * 2
        assert await failure_of(worker.fail.call()) == "as it should"
        assert await failure_of(worker.fail_later.call()) == "as it should"
    waiting = workers.wait.call()
    await workers.open.call()
    await waiting
    workers.contribute_one()
    await weft.quiescence()


weft.run(main)
