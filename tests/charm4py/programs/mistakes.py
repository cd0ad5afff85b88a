"""What cannot be raises an error that says what to do."""

from charm4py import Chare, Group, charm

from weft.charm4py import threads


class Worker(Chare):
    def blocks(self, other):
        return other.value(ret=True).get()

    def value(self):
        return 1


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
    print("mistakes passed")
    exit()


charm.start(main)
