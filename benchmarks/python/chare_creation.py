"""Seconds from the call that creates 10,000 Python chares on one PE until every constructor has run."""

import json
import time

import weft

CHARES = 10_000


class Element(weft.Chare):
    def __init__(self, number):
        self.number = number

    def answer(self):
        return self.number


async def main():
    start = time.perf_counter()
    array = weft.Array(Element, CHARES, args=(3,))
    # On one PE all are there once the last one answers.
    assert await array[CHARES - 1].answer.call() == 3
    elapsed_s = time.perf_counter() - start
    print(json.dumps({"size_bytes": 0, "metric": "time_s", "value": elapsed_s}), flush=True)


weft.run(main)
