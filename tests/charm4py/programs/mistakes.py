"""What cannot be raises an error that says what to do."""

from charm4py import Array, Channel, Chare, Group, charm, coro

import weft
from weft.charm4py import threads


class Worker(Chare):
    def blocks(self, other):
        return other.value(ret=True).get()

    def value(self):
        return 1

    @coro
    def mix_devices(self):
        channel = Channel(self, self.thisProxy[self.thisIndex[0]])
        array = weft.DeviceArray(1, "float64", "emulated")
        return [
            message_of(lambda: channel.send(array, "text")),
            message_of(lambda: channel.send("text", 4, src_ptrs=[8], src_sizes=[8])),
            message_of(lambda: channel.send(src_ptrs=[1, 2], src_sizes=[1])),
            message_of(lambda: channel.send(1, to=2)),
        ]

    @coro
    def receive_after_ready(self):
        channel = Channel(self, self.thisProxy[1 - self.thisIndex[0]])
        channel.send("text")
        channel.ready()
        found = message_of(lambda: channel.recv(weft.DeviceArray(1, "float64", "emulated")))
        return found, channel.recv()

    def block_on_channel(self):
        self.channel = Channel(self, self.thisProxy[1 - self.thisIndex[0]])
        array = weft.DeviceArray(1, "float64", "emulated")
        calls = (lambda: self.channel.send(array), lambda: self.channel.recv(array), self.channel.recv)
        return [message_of(call) for call in calls]

    @coro
    def use_channel(self):
        self.channel.send("text")
        return self.channel.recv()


def fifth(chare):
    return 5


def reciprocal(x):
    return 1 / x


@coro
def reciprocal_of_coroutine(x):
    return 1 / x


def failed_task(call):
    """Which task of the pool an exception names. A plain function runs without a coroutine around it."""
    try:
        call()
    except weft.RemoteError as error:
        return error.traceback_text.splitlines()[-1]
    raise AssertionError("no exception")


def message_of(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__ + ": " + str(error)
    raise AssertionError("no exception")


def main(args):
    group = Group(Worker)
    found = message_of(group[1].blocks(group[0], ret=True).get)
    assert "NotThreadedError" in found and "@coro" in found, found
    assert isinstance(threads.NotThreadedError(), Exception)
    assert "remote_exec" in message_of(charm.thisProxy[0].exec("x = 1", awaitable=True).get)
    assert "Chare" in message_of(lambda: Group(int))
    assert "not one of the tree" in message_of(lambda: charm.getTopoTreeEdges(1, 0, [0]))
    assert "gave the section 5" in message_of(lambda: charm.split(group, 2, fifth))
    assert "onPEs" in message_of(Group(Worker, onPEs=[1]).ckLocalBranch)
    for found, received in Array(Worker, 2).receive_after_ready(ret=True).get():
        assert "cannot follow iwait or ready" in found, found
        assert received == "text"
    workers = Array(Worker, 2)
    for failures in workers.block_on_channel(ret=True).get():
        assert all("NotThreadedError" in found for found in failures), failures
    assert workers.use_channel(ret=True).get() == ["text", "text"]
    *mixed, sizes, name = Array(Worker, 1)[0].mix_devices(ret=True).get()
    assert all("has device arrays or other values" in found for found in mixed), mixed
    assert "2 addresses of device memory and 1 sizes" in sizes, sizes
    assert "unexpected keyword argument 'to'" in name, name
    assert "charm.lib.CudaMalloc does not exist" in message_of(lambda: charm.lib.CudaMalloc)
    found = failed_task(lambda: charm.pool.map(reciprocal, [2, 1, 0], chunksize=3))
    assert "task 2 of map(reciprocal) on PE 1, whose argument is 0" in found, found
    found = failed_task(charm.pool.Task(reciprocal, (0,), ret=True).get)
    assert "of submit(reciprocal) on PE 1" in found, found
    (failing,) = charm.pool.map_async(reciprocal, [0], multi_future=True)
    found = failed_task(failing.get)
    assert "of submit(reciprocal) on PE 1" in found, found
    found = failed_task(lambda: charm.pool.map(reciprocal_of_coroutine, [0]))
    assert "in task 0 of map(reciprocal_of_coroutine) on PE 1" in found, found
    print("mistakes passed")
    exit()


charm.start(main)
