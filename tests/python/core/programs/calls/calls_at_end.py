"""Calls of other threads during which the job ends: they are refused. Checks itself."""

import threading

import weft


class Worker(weft.Chare):
    def work(self, x=None):
        return x


class Slow:
    """Its pickling lasts until the job has ended."""

    def __init__(self, fails):
        self.began = threading.Event()
        self.fails = fails

    def __reduce__(self):
        self.began.set()
        assert job_has_ended.wait(timeout=60)
        if self.fails:
            raise TypeError("it does not pickle")
        return int, (3,)


job_has_ended = threading.Event()
threads, codes = [], []


def call(method, value):
    try:
        codes.append(repr(method(value)))
    except weft.Error as error:
        codes.append(error.code)


async def main():
    workers = weft.Array(Worker, 2)
    await workers.work.call()
    part = workers[0:2]
    methods = [workers[1].work, workers.work.call, workers[0].work.send, part.work.call]
    for method in methods:
        for fails in False, True:
            value = Slow(fails)
            threads.append(threading.Thread(target=call, args=(method, value)))
            threads[-1].start()
            while not value.began.is_set():
                await weft.sleep(0.001)


weft.run(main)
job_has_ended.set()
for thread in threads:
    thread.join(timeout=60)
if threads:
    assert codes == ["closed"] * len(threads), codes
    print("all checked")
