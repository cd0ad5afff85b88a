"""Calls of a method on the own PE: local_calls.py send|aggregated|call|coroutine|future COUNT.

instructions.py counts what one of them costs.
"""

from __future__ import annotations

import sys
from typing import Any

import weft


class Callee(weft.Chare):
    def ordinary(self, value: int) -> int:
        return value

    async def coroutine(self, value: int) -> int:
        return value

    def set(self, future: weft.Future[Any], value: int) -> None:
        future.set(value)


async def main() -> None:
    way, count = sys.argv[1], int(sys.argv[2])
    callees = weft.Array(Callee, 1)
    callee = callees[0]
    ordinary = callees.aggregated().ordinary
    for i in range(count):
        if way == "send":
            await callee.ordinary(1)
            if i % 64 == 63:
                await callee.ordinary.call(1)
        elif way == "aggregated":
            await ordinary(0, 1)
            if i % 64 == 63:
                await weft.yield_now()
        elif way == "call":
            await callee.ordinary.call(1)
        elif way == "coroutine":
            await callee.coroutine.call(1)
        else:
            future: weft.Future[Any] = weft.Future()
            callee.set(future, 1)
            await future


weft.run(main)
