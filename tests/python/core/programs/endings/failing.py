"""One way to fail per argument."""

import sys
import time

import numpy as np

import weft

MODE = sys.argv[1]


class Worker(weft.Chare):
    async def reduce_and_raise(self):
        await self.allreduce(1, weft.Reducer.custom(raise_reducing))

    async def forgets_await(self):
        return self.later()

    async def reduce_and_leave(self):
        await self.allreduce(1, weft.Reducer.custom(leave_reducing))

    def divide(self, x):
        return 1 / x

    async def later(self):
        await weft.sleep(0.001)
        raise ValueError("too late")

    async def ask(self, index):
        return await self.proxy[index].divide.call(0)

    async def ask_for(self, other, index):
        return await other.ask.call(index)

    def leave(self, code):
        sys.exit(code)

    async def mismatch(self):
        if self.index > 1:
            return  # its own error might end the job before that of the channel
        channel = weft.Channel(self, self.proxy[1 - self.index])
        if self.index == 0:
            await channel.send(np.zeros(10))
        else:
            await channel.recv(into=np.zeros(5))

    async def uneven(self):
        await self.allreduce(np.zeros(3 + self.index % 2), weft.Reducer.sum)

    def unsendable(self):
        return lambda: None

    async def foreign(self):
        await Foreign()

    def print_and_wait(self):
        print(f"PE {weft.my_pe()} printed this")


class Meeting(weft.Chare):
    async def meet(self, failing):
        if self.index == failing:
            raise ValueError(f"{failing} is not coming")
        await self.allreduce()


class Foreign:
    def __await__(self):
        yield "something"


class Fragile(weft.Chare):
    def __init__(self, limit):
        if self.index >= limit:
            raise OverflowError(f"no element {self.index}")


class LeavesAtOnce(weft.Chare):
    def __init__(self):
        sys.exit(3)

    def anything(self):
        pass


def leave_reducing(a, b):
    sys.exit(9)


def raise_reducing(a, b):
    raise KeyError("no such key")


class Shared(weft.Chare):
    made = None

    def __new__(cls):
        cls.made = cls.made or super().__new__(cls)
        return cls.made


class Kept(weft.Chare):
    def __init__(self):
        kept.append(self)
        raise ValueError(f"not {self.index}")


kept = []


class OnlyHere(weft.Chare):
    pass


if MODE == "only_here" and sys.argv[0]:
    import os

    if os.environ.get("WEFT_PE", "0") != "0":
        del OnlyHere


async def main():
    workers = weft.Array(Worker, 4)

    async def wait():
        await weft.Future()

    if MODE == "unawaited":
        workers[3].divide(0)
        await wait()
    elif MODE == "coroutine":
        workers[3].later()
        await wait()
    elif MODE == "dropped_call":
        workers[3].divide.call(0)
        await wait()
    elif MODE == "awaited":
        try:
            await workers[3].ask.call(1)
        except weft.RemoteError as error:
            assert (error.type_name, error.message) == ("ZeroDivisionError", "division by zero")
            assert "in divide" in error.traceback_text and "Worker[1].divide on PE" in str(error.__cause__)
            assert "in ask" in error.traceback_text and "Worker[3].ask on PE" in error.traceback_text
            try:
                await workers[2].ask_for.call(workers[3], 1)
            except weft.RemoteError as again:
                assert (again.type_name, again.message) == (error.type_name, error.message)
                places = ["Worker[1].divide on", "Worker[3].ask on", "Worker[2].ask_for on"]
                at = [again.traceback_text.index(place) for place in places]
                assert at == sorted(at), again.traceback_text
            try:
                await workers[1].unsendable.call()
            except weft.RemoteError as refused:
                assert refused.type_name == "weft.Error" and "cannot be sent" in refused.message
            print("caught")
    elif MODE == "gathered":
        try:
            await workers.divide.call(0)
        except weft.RemoteError as error:
            assert error.type_name == "ZeroDivisionError" and "].divide on PE " in error.traceback_text
            print("caught")
    elif MODE == "at_once":  # the others wait for the one that fails
        first, second, third = (weft.Array(Meeting, 6) for _ in range(3))
        for several in (first, second[1:5], weft.combine(third[:2], first[:0], third[3:])):
            try:
                await several.meet.call(4)
            except weft.RemoteError as error:
                assert error.message == "4 is not coming", error
            else:
                raise AssertionError(several)
        print("caught")
    elif MODE == "main":
        raise ValueError("from main")
    elif MODE == "constructor":
        weft.Array(Fragile, 4, args=(3,))
        await wait()
    elif MODE == "exit_in_constructor":
        leaving = weft.Array(LeavesAtOnce, 4)
        await leaving[0].anything.call()
    elif MODE == "shared":
        weft.Array(Shared, 4)
        await wait()
    elif MODE == "kept":
        weft.Array(Kept, 1)
        await wait()
    elif MODE == "exit":
        weft.exit(5)
        await wait()
    elif MODE == "system_exit":
        workers[3].leave(7)
        await wait()
    elif MODE == "mismatch":
        await workers.mismatch.call()
    elif MODE == "uneven":
        await workers.uneven.call()
    elif MODE == "reducer":
        await workers.reduce_and_raise.call()
    elif MODE == "forgotten_await":
        await workers[3].forgets_await.call()
    elif MODE == "unsendable_result":
        await workers[3].unsendable.call()
    elif MODE == "foreign":
        await workers[3].foreign.call()
    elif MODE == "only_here":
        weft.Array(OnlyHere, 4)
        await wait()
    elif MODE == "printed":
        await workers.print_and_wait.call()
        workers[3].divide(0)
        await wait()
    elif MODE == "callback":
        future = weft.Future()
        future.then(lambda _: 1 / 0)
        future.set()
        await wait()
    elif MODE == "exit_in_callback":
        future = weft.Future()
        future.then(lambda _: sys.exit(9))
        future.set()
        await wait()
    elif MODE == "exit_in_posted":
        weft.post_from_any_thread(lambda: sys.exit(9))
        await wait()
    elif MODE == "exit_in_reducer":
        await workers.reduce_and_leave.call()
    elif MODE == "asleep":
        print("asleep")
        await wait()
    elif MODE == "busy":
        print("asleep")
        while True:
            time.sleep(0.01)


try:
    weft.run(main)
finally:
    for chare in kept:
        try:
            print(chare.index)
        except weft.Error as error:
            print(error)
