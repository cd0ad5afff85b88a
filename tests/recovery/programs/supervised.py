"""A job that loses PEs and handles the losses itself (`weft run --on-loss raise`).

The first argument names what is done; the program prints what it has seen.
"""

import os
import signal
import sys

import weft

LAST = 2  # the PE that is lost in a job of 3


class Worker(weft.Chare):
    def __init__(self, name="worker"):
        self.name = name
        self.calls = 0

    def die(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def count(self):
        self.calls += 1
        return self.calls

    def where(self):
        return weft.my_pe()

    async def ask(self, other):
        return await other.count.call()

    async def never(self):
        await weft.sleep(1000)

    def total(self):
        return self.allreduce(1, weft.Reducer.sum)

    async def sum_all(self):
        return await self.allreduce(1, weft.Reducer.sum)

    async def receive_from(self, peer):
        return await weft.Channel(self, peer).recv_object()

    async def send_to(self, peer):
        await weft.Channel(self, peer).send_object("first")


async def lost(awaitable):
    """The lost PE that the operation names."""
    try:
        value = await awaitable
    except weft.LostPE as error:
        return f"LostPE {error.pe}: {error}"
    return f"got {value!r}"


async def call():
    workers = weft.Array(Worker, 3)
    await workers
    waiting = workers[LAST].never.call()
    print("dies:", await lost(workers[LAST].die.call()))
    print("waits:", await lost(waiting))
    print("later:", await lost(workers[LAST].count.call()))
    workers[LAST].count()  # dropped
    print("living:", await workers[1].count.call())
    print("nested:", await lost(workers[1].ask.call(workers[LAST])))
    print("array:", await lost_at_once(lambda: workers.count.call()))
    print("quiescence:", await lost(weft.quiescence()))


async def lost_at_once(start):
    try:
        return await lost(start())
    except weft.LostPE as error:
        return f"LostPE {error.pe}: {error}"


async def revive():
    workers = weft.Array(Worker, 3, args=("named",))
    await workers
    single = weft.Singleton(Worker, LAST, args=("single",))
    await workers[LAST].count.call()
    await single.count.call()
    print("alive:", str(await failure(weft.revive(workers[LAST]))).splitlines()[0])
    print("dies:", await lost(workers[LAST].die.call()))
    await weft.revive(workers[LAST])
    print("new:", await workers[LAST].where.call(), await workers[LAST].count.call())
    print("single dies:", await lost(single.count.call()))
    await weft.revive(single)
    print("single:", await single.where.call(), await single.count.call())
    print("from 1:", await workers[1].ask.call(workers[LAST]))
    more = weft.Array(Worker, 3)
    print("made later:", [await more[i].where.call() for i in range(3)])
    groups = weft.Group(Worker)
    print("group:", await refusal(lambda: weft.revive(groups[LAST])))


async def failure(awaitable):
    try:
        await awaitable
    except weft.Error as error:
        return error
    return None


async def refusal(start):
    try:
        await start()
    except weft.Error as error:
        return str(error)
    return "nothing"


async def together():
    workers = weft.Array(Worker, 3)
    await workers
    all_results = workers.never.call()
    reduction = workers[0].sum_all.call()
    receiving = workers[1].receive_from.call(workers[LAST])
    await workers[LAST].send_to.call(workers[1])
    print("first:", await receiving)  # the ends are connected
    receiving = workers[1].receive_from.call(workers[LAST])
    await workers[1].count.call()  # it waits
    workers[LAST].die()
    print("gather:", await lost(all_results))
    print("allreduce:", await lost(reduction))
    print("channel:", await lost(receiving))
    print("send:", await lost(workers[1].send_to.call(workers[LAST])))


async def main_dies():
    workers = weft.Array(Worker, 3)
    await workers
    os.kill(os.getpid(), signal.SIGKILL)


async def loop():
    """A supervisor: each worker is made anew when it dies."""
    workers = weft.Array(Worker, 3)
    await workers
    done = 0
    victims = [1, 2]
    for step in range(60):
        index = 1 + step % 2
        try:
            if step in (10, 20):
                await workers[victims.pop(0)].die.call()
            else:
                await workers[index].count.call()
                done += 1
        except weft.LostPE:
            for each in (1, 2):
                await failure(weft.revive(workers[each]))
    print("done", done, [await workers[i].where.call() for i in range(3)])


weft.run(globals()[sys.argv[1]])
