"""A name of a load-balancing strategy is given once. Prints "all checked"."""

from __future__ import annotations

from functools import partial

import weft
from weft import load_balancing


def stay(snapshot: load_balancing.Snapshot) -> list[int]:
    return snapshot.pes()


def loaded() -> load_balancing.Strategy:
    """The function of a module that is loaded once more."""
    names: dict[str, load_balancing.Strategy] = {}
    exec(compile("def again(snapshot):\n    return snapshot.pes()\n", "module.py", "exec"), names)
    return names["again"]


def expect_refusal(function: load_balancing.Strategy) -> None:
    try:
        load_balancing.register("again", function)
    except weft.Error as error:
        assert "the program has registered a strategy of this name" in str(error), error
    else:
        raise AssertionError("the name was given twice")


first, second = loaded(), loaded()
assert first is not second
assert load_balancing.strategy("again")(first) is first
load_balancing.register("again", first)
load_balancing.register("again", second)
assert load_balancing._functions["again"] is second
expect_refusal(stay)
expect_refusal(partial(stay))
assert load_balancing._functions["again"] is second

load_balancing.register("reads", stay, communication=True)
load_balancing.register("reads", stay, communication=True)
try:
    load_balancing.register("reads", stay)
except weft.Error as refused:
    assert "strategy 'reads' is registered with communication=True" in str(refused), refused
else:
    raise AssertionError("it reads communication, and does not")
print("all checked")
