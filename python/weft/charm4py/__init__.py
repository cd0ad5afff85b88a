"""charm4py on Weft: programs that were written for charm4py run on it unmodified.

    from weft.charm4py import charm, Chare, Group

    class Hello(Chare):
        def say(self):
            print("hello from PE", charm.myPe())

    def main(args):
        Group(Hello).say(awaitable=True).get()
        exit()

    charm.start(main)

``weft run --charm4py -n 4 app.py`` makes ``import charm4py`` this module. docs/charm4py.md says what differs.
"""

from __future__ import annotations

try:
    from weft.charm4py import threads
except ModuleNotFoundError as error:
    if error.name != "greenlet":
        raise
    raise ImportError("weft.charm4py needs the package greenlet: pip install 'weft[charm4py]'") from error

from weft.charm4py import ray
from weft.charm4py._channels import Channel
from weft.charm4py._chare import Array, ArrayMap, Chare, Group
from weft.charm4py._charm import Options, charm, readonlies, register
from weft.charm4py._conditions import when
from weft.charm4py._futures import Future
from weft.charm4py._reducers import reducers as Reducer
from weft.charm4py._threads import coro, coro_ext

threaded = coro
charm4py_version = "1.1"

__all__ = [
    "Array",
    "ArrayMap",
    "Channel",
    "Chare",
    "Future",
    "Group",
    "Options",
    "Reducer",
    "charm",
    "coro",
    "coro_ext",
    "ray",
    "readonlies",
    "register",
    "threaded",
    "threads",
    "when",
]
