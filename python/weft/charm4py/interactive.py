"""``python -m charm4py.interactive``: a prompt on PE 0. With `weft run --charm4py`, on several PEs."""

from weft.charm4py import (  # noqa: F401  (names for the prompt)
    Array,
    ArrayMap,
    Channel,
    Chare,
    Future,
    Group,
    Reducer,
    charm,
    coro,
    readonlies,
    threaded,
    when,
)

if __name__ == "__main__":
    charm.start(interactive=True)
