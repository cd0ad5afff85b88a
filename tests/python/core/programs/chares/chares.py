"""Collections, proxies, entry methods, futures, priorities and quiescence; checks itself."""

import dataclasses
import threading

import numpy as np

import weft


@dataclasses.dataclass
class Letter:
    text: str
    reply_to: weft.Future
    proxy: weft.ElementProxy


class Node(weft.Chare):
    def __init__(self, start=0, *, scale=1):
        self.start = start
        self.seen = []
        self.index_in_init = self.index

    def where(self):
        return self.index, weft.my_pe(), self.start

    def remember(self, value):
        self.seen.append(value)

    def recall(self):
        return self.seen

    def both(self, *args, **kwargs):
        return args, kwargs

    async def slow(self, x):
        await weft.sleep(0.001)
        return x * 10

    def answer(self, letter):
        letter.reply_to.set(f"{letter.text} from {self.index}")
        letter.proxy.remember(letter.text)

    def set_twice(self, future):
        future.set(1)

    async def fan_out(self, proxy):
        """A coroutine that awaits calls to others, itself included."""
        futures = [element.slow.call(i) for i, element in enumerate(proxy)]
        return [await future for future in futures]

    def _private(self):
        raise AssertionError("not an entry method")


class Grid(weft.Chare):
    def check(self, shape):
        assert len(self.index) == len(shape) == len(self.proxy.shape)
        assert self.proxy[self.index] == self.proxy[tuple(self.index)]
        return self.index


class Local(weft.Chare):
    async def order(self):
        """Messages to this PE with priorities, posted before any of them can be taken."""
        me = self.proxy[self.index]
        self.taken = []
        for name, priority in (("late", 5), ("first", 0), ("early", -1), ("second", 0), ("earliest", -7)):
            me.with_priority(priority).take(name)
        await weft.quiescence()
        return self.taken

    def take(self, name):
        self.taken.append(name)


class Counter(weft.Chare):
    total = 0

    def spread(self, depth):
        self.total += 1
        if depth > 0:
            self.proxy[(self.index + 1) % len(self.proxy)].spread(depth - 1)
            self.proxy[(self.index + 3) % len(self.proxy)].spread(depth - 1)

    def count(self):
        return self.total


async def check_collections():
    pes = weft.num_pes()
    nodes = weft.Array(Node, 10, args=(7,))
    assert nodes.shape == (10,) and len(nodes) == 10
    places = await nodes.where.call()
    assert [index for index, _, _ in places] == list(range(10))
    assert [start for _, _, start in places] == [7] * 10
    assert [pe for _, pe, _ in places] == sorted(pe for _, pe, _ in places)
    assert {pe for _, pe, _ in places} == set(range(min(pes, 10)))
    spread = await weft.Array(Node, 10, map="round_robin").where.call()
    assert [pe for _, pe, _ in spread] == [i % pes for i in range(10)]
    diagonal = await weft.Array(Node, (3, 4), map=lambda index: sum(index) % pes).where.call()
    assert [pe for _, pe, _ in diagonal] == [(i + j) % pes for i in range(3) for j in range(4)]
    for bad in (lambda index: index * pes, lambda index: -1, lambda index: 2**40, lambda index: "here"):
        try:
            weft.Array(Node, 2, map=bad)
        except (weft.Error, TypeError):
            continue
        raise AssertionError("a map to nowhere was accepted")
    group = await weft.Group(Node, args=(1,)).where.call()
    assert group == [(pe, pe, 1) for pe in range(pes)]
    single = weft.Singleton(Node, pes - 1, args=(3,))
    assert await single.where.call() == (0, pes - 1, 3)


async def check_grids():
    for shape in ((6,), (2, 3), (2, 1, 3), (2, 2, 2, 1, 2, 2)):
        grid = weft.Array(Node if len(shape) == 1 else Grid, shape)
        if len(shape) > 1:
            assert await grid.check.call(shape) == list(np.ndindex(shape))
            assert [element.index for element in grid] == list(np.ndindex(shape))


async def check_calls():
    nodes = weft.Array(Node, 6)
    assert await nodes[2].both.call(1, "two", three=3, four=[4]) == ((1, "two"), {"three": 3, "four": [4]})
    assert await nodes[5].slow.call(4) == 40
    assert await nodes.slow.call(2) == [20] * 6
    assert await nodes[1].fan_out.call(nodes) == [0, 10, 20, 30, 40, 50]
    many = list(range(200))
    assert await nodes[3].both.call(*many) == (tuple(many), {})
    nodes.remember("all")
    nodes[4].remember("one")
    await weft.quiescence()
    assert await nodes.recall.call() == [["all"]] * 4 + [["all", "one"], ["all"]] or weft.num_pes() > 1
    assert sorted((await nodes.recall.call())[4]) == ["all", "one"]


async def check_futures():
    nodes = weft.Array(Node, 4)
    reply = weft.Future()
    nodes[3].answer(Letter("hi", reply, nodes[0]))
    assert not reply.done()
    assert await reply == "hi from 3" and reply.done() and reply.result() == "hi from 3"
    assert await reply == "hi from 3"  # a second time
    await weft.quiescence()
    assert await nodes[0].recall.call() == ["hi"]
    called = []
    reply.then(lambda future: called.append(future.result()))
    await weft.sleep(0)
    assert called == ["hi from 3"]
    local = weft.Future()
    local.set()
    assert await local is None
    try:
        local.set(2)
    except weft.Error as error:
        assert "second time" in str(error)
    else:
        raise AssertionError("a future was set twice")


async def check_proxies():
    nodes = weft.Array(Node, 4)
    assert nodes[1] == nodes[1] != nodes[2] and len({nodes[1], nodes[1], nodes[2]}) == 2
    [(back, inside)] = [(await nodes[2].both.call(nodes[3], nodes))[0]]
    assert back == nodes[3] and inside == nodes and type(inside) is weft.Array
    assert nodes[3].collection == nodes and nodes[3].index == 3
    assert not hasattr(nodes[0], "_private") and not hasattr(nodes, "missing")


async def check_quiescence():
    counters = weft.Array(Counter, 8)
    counters[0].spread(7)
    await weft.quiescence()
    assert sum(await counters.count.call()) == 2**8 - 1


async def check_threads():
    done = weft.Future()
    threading.Thread(
        target=lambda: weft.post_from_any_thread(lambda: done.set(threading.get_ident()))
    ).start()
    assert await done == threading.get_ident()


async def main():
    await check_collections()
    await check_grids()
    await check_calls()
    await check_futures()
    await check_proxies()
    assert await weft.Singleton(Local).order.call() == ["earliest", "early", "first", "second", "late"]
    await check_quiescence()
    await check_threads()
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
