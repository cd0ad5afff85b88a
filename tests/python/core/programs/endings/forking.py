"""Processes that a program forks during a job: they have no job, and the job does not notice them."""

import multiprocessing
import os
import subprocess
import sys

import weft


class Forker(weft.Chare):
    def fail(self):
        raise KeyError("in an entry method")

    def fork(self, how):
        child = os.fork()
        if child == 0:
            return end(how)
        return exit_code(child)

    async def fork_in_a_coroutine(self, how):
        await weft.sleep(0)
        child = os.fork()
        if child == 0:
            return end(how)
        return exit_code(child)


class Named:
    """Dropped in the child, it says so; its memory is the parent's."""

    def __init__(self):
        self.array = weft.DeviceArray(1000, float, "emulated:0")


def end(how):
    """Runs in the child."""
    if how == "exit":
        sys.exit(3)
    if how == "raise":
        raise LookupError("in the child")
    if how == "call weft":
        for call in (weft.my_pe, weft.Future, weft.quiescence, lambda: weft.sleep(0), lambda: weft.run(end)):
            try:
                call()
            except weft.Error as error:
                if "forked" in str(error):
                    continue
            sys.exit(1)
        sys.exit(4)
    return how  # back into a job that this process does not have


def exit_code(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_a_process(queue):
    try:
        weft.num_pes()
    except weft.Error as error:
        queue.put(str(error))


async def main():
    forkers = weft.Array(Forker, weft.num_pes())
    for how, code in [("exit", 3), ("raise", 1), ("call weft", 4), ("return", 1)]:
        assert await forkers.fork.call(how) == [code] * weft.num_pes(), how
        assert await forkers.fork_in_a_coroutine.call(how) == [code] * weft.num_pes(), how

    held = Named()
    future = weft.Future()
    failed = forkers[0].fail.call()  # an error that nobody has looked at
    while not failed.done():
        await weft.sleep(0)
    child = os.fork()
    if child == 0:
        del held, future, failed
        sys.exit(5)
    assert exit_code(child) == 5
    del future
    try:
        await failed
    except weft.RemoteError as error:
        assert error.type_name == "KeyError"
    assert (await held.array.copy_from(bytes(8000))) is held.array

    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    process = fork.Process(target=in_a_process, args=(queue,))
    process.start()
    assert "forked" in queue.get()
    process.join()
    assert process.exitcode == 0
    ended = subprocess.run([sys.executable, "-c", "raise SystemExit(6)"], check=False)
    assert ended.returncode == 6
    assert await forkers[0].fork.call("exit") == 3
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
