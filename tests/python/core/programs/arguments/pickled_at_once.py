"""Two threads that pickle at once, the one in the middle of the other; checks itself."""

import threading

import numpy as np

import weft


class Step:
    """Its pickling calls a function."""

    def __init__(self, name, function):
        self.name = name
        self.function = function

    def __reduce__(self):
        self.function()
        return str, (self.name,)


class Worker(weft.Chare):
    def plain(self, values):
        return [value.tolist()[0] if hasattr(value, "tolist") else value for value in values]


# Each is named twice: pickles that share them refer to parts that travel beside them.
FIRST, SECOND = np.full(4, 55), np.full(4, 66)
inner_began, outer_began, inner_goes_on = (threading.Event() for _ in range(3))


def begin_outer():
    outer_began.set()
    assert inner_began.wait(timeout=60)


def begin_inner():
    inner_began.set()
    assert inner_goes_on.wait(timeout=60)


async def main():
    workers = weft.Array(Worker, 2)
    done = weft.Future()

    def run():
        step = Step("outer", begin_outer)
        call = workers[1].plain.call([FIRST, step, step, FIRST, SECOND, SECOND])
        inner_goes_on.set()
        done.set(weft.as_concurrent(call).result(timeout=60))

    threading.Thread(target=run).start()
    while not outer_began.is_set():
        await weft.sleep(0.001)
    step = Step("inner", begin_inner)
    mine = await workers[1].plain.call([np.full(2, 1), step, step, SECOND, FIRST, FIRST])
    assert mine == [1, "inner", "inner", 66, 55, 55], mine
    of_thread = await done
    assert of_thread == [55, "outer", "outer", 55, 66, 66], of_thread
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
