"""What only the PE's thread can do is refused on others, each of it; checks itself. Calls: event_loops.py."""

import threading

import numpy as np
from refusing import refused

import weft


class Worker(weft.Chare):
    def __init__(self):
        self.seen = 0

    def work(self, x=None):
        self.seen += 1
        return self.seen

    def own_calls(self):
        peer = self.proxy[0]
        channel = weft.Channel(self, peer, id=7)
        future = weft.Future()
        calls = {
            "contribute": lambda: self.contribute(1, weft.Reducer.sum, future),
            "allreduce": lambda: self.allreduce(1, weft.Reducer.sum),
            "migrate": lambda: self.migrate(0),
            "remove_self": self.remove_self,
            "at_sync": self.at_sync,
            "set_load_s": lambda: self.set_load_s(1.0),
            "device_work": self.device_work,
            "load_s": lambda: self.load_s,
            "device_load_s": lambda: self.device_load_s,
            "pinned": lambda: self.pinned,
            "pin": lambda: setattr(self, "pinned", True),
            "proxy": lambda: self.proxy,
            "Channel": lambda: weft.Channel(self, peer),
            "send": lambda: channel.send(np.zeros(3)),
            "recv": lambda: channel.recv(np.zeros(3)),
            "send_object": lambda: channel.send_object(1),
            "recv_object": channel.recv_object,
        }
        return [(name, elsewhere(call)) for name, call in calls.items()], elsewhere(lambda: self.index)


def elsewhere(call):
    """What the call says on another thread."""
    outcome = []

    def run():
        try:
            outcome.append(repr(call()))
        except weft.Error as error:
            outcome.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return outcome[0]


def step(coroutine):
    """Runs a coroutine up to its first await."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    finally:
        coroutine.close()
    return "it waits"


async def awaiting(thing):
    return await thing


class Foreign:
    """Device memory of another library."""

    __cuda_array_interface__ = {"shape": (3,), "typestr": "<f8", "data": (4096, False), "version": 3}  # noqa: RUF012


async def limited():
    async with weft.timeout(1):
        pass


async def main():
    workers = weft.Array(Worker, 4)
    waiting, turn = weft.Future(), weft.yield_now()
    sparse = weft.Array(Worker, sparse=True)
    part, pool, array = workers[0:2], weft.Pool(), weft.DeviceArray(3, float, "emulated:0")
    stream = weft.Stream("emulated:0")
    calls = {
        "section": lambda: workers.section([0]),
        "split": lambda: workers.split(2),
        "combine": lambda: weft.combine(part, part),
        "destroy": workers.destroy,
        "created": workers.created,
        "insert": lambda: sparse.insert(1),
        "done_inserting": sparse.done_inserting,
        "remove": lambda element=sparse[3]: element.remove(),
        "Array": lambda: weft.Array(Worker, 1),
        "Group": lambda: weft.Group(Worker),
        "Singleton": lambda: weft.Singleton(Worker),
        "await turn": lambda: step(awaiting(turn)),
        "await collection": lambda: step(awaiting(workers)),
        "as_completed": lambda: weft.as_completed([waiting]),
        "device memory": lambda method=workers[0].work: method(Foreign()),
        "timeout": lambda: step(limited()),
        "sleep": lambda: weft.sleep(0),
        "yield_now": weft.yield_now,
        "progress": weft.progress,
        "quiescence": weft.quiescence,
        "exit": weft.exit,
        "checkpoint": lambda: step(awaiting(weft.checkpoint("nowhere", {}))),
        "restore": lambda: step(awaiting(weft.restore("nowhere"))),
        "Pool": weft.Pool,
        "map": lambda: pool.map(abs, [1]),
        "imap": lambda: pool.imap(abs, [1]),
        "submit": lambda: pool.submit(abs, 1),
        "close": lambda: step(pool.close()),
        "DeviceArray": lambda: weft.DeviceArray(3, float, "emulated:0"),
        "to_host": array.to_host,
        "copy_from": lambda: array.copy_from(np.zeros(3)),
        "Stream": lambda: weft.Stream("emulated:0"),
        "stream_done": lambda: weft.stream_done(stream),
        "register": lambda: weft.register(np.zeros(3)),
        "device": lambda: weft.device("emulated"),
        "transport_use": weft.transport_use,
        "peer_transports": weft.peer_transports,
    }
    for name, call in calls.items():
        said = elsewhere(call)
        assert "on another thread than the PE's" in said, (name, said)
    own, index = await workers[1].own_calls.call()
    for name, said in own:
        assert "on another thread than the PE's" in said, (name, said)
    assert index == "1", "an index does not change"
    # What any thread may do.
    assert elsewhere(weft.my_pe) == "0" and elsewhere(weft.num_pes) == str(weft.num_pes())
    posted = weft.Future()
    elsewhere(lambda: weft.post_from_any_thread(lambda: posted.set(5)))
    assert await posted == 5
    assert await weft.asyncio_future(following(workers[0].work.call())) == 1
    # An await waits in an event loop; without one it says what does.
    assert elsewhere(lambda: step(awaiting(posted))) == "5"
    assert "weft.as_concurrent" in elsewhere(lambda: step(awaiting(waiting)))
    # Nothing has happened.
    assert await workers.work.call() == [2, 1, 1, 1] and not waiting.done()
    assert await pool.map(abs, [-1]) == [1]
    await pool.close()
    refused("closed", pool.map, abs, [1])
    return "all checked"


async def following(awaited):
    return await weft.as_asyncio(awaited)


result = weft.run(main)
if result is not None:
    print(result)
