"""`Reducer` of charm4py: Weft's own reducers, and functions of a list of contributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import _core
from weft._chare.reducers import Reducer as WeftReducer

_Function = Callable[[list[Any]], Any]


class Added:
    """A reducer that the program has added.

    `function` takes a list of contributions, or of what it has made of some. `pre` is applied to each
    contribution, and `post` to the result.
    """

    def __init__(self, function: _Function, pre: Any, post: Any) -> None:
        self.function = function
        self.pre = pre
        self.post = post
        self.name = function.__name__

        def merge(a: Any, b: Any) -> Any:
            return function([a, b])

        merge.__module__ = __name__
        merge.__qualname__ = f"merging.{self.name}"
        self.merge = merge
        self.weft: Any = None  # made when it is first used: others must find its name

    def __call__(self, contributions: list[Any]) -> Any:
        return self.function(contributions)

    def __reduce__(self) -> Any:
        return added, (self.name,)


class Reducers:
    """The reducers. `addReducer(function)` makes `Reducer.<name of the function>`, on this PE."""

    sum = WeftReducer.sum
    product = WeftReducer.product
    max = WeftReducer.max
    min = WeftReducer.min
    logical_and = WeftReducer.logical_and
    logical_or = WeftReducer.logical_or
    logical_xor = WeftReducer.logical_xor
    gather = WeftReducer.gather
    nop = None

    def addReducer(self, func: _Function, pre: Any = None, post: Any = None) -> None:
        """Adds a function of a list of contributions. Every PE that takes part must do so."""
        reducer = Added(func, pre, post)
        setattr(self, reducer.name, reducer)
        setattr(merging, reducer.name, reducer.merge)


class _Merging:
    """Where other PEs find the function that merges for an added reducer."""


merging = _Merging()
reducers = Reducers()


def added(name: str) -> Added:
    """The reducer that this PE has added by that name."""
    found = getattr(reducers, name, None)
    if not isinstance(found, Added):
        raise _core.Error(
            f"PE {_core.my_pe()} has no reducer {name}; call Reducer.addReducer({name}) on every PE, at the "
            "top level of the program"
        )
    return found


def prepared(reducer: Any, data: Any) -> tuple[Any, Any, Any]:
    """A contribution as it is sent, Weft's reducer, and the function of the result or None.

    All are None if there is no reducer: the contributions have no value.
    """
    if reducer is None:
        return None, None, None
    if isinstance(reducer, WeftReducer):
        if type(data) is tuple and reducer is not WeftReducer.gather:
            data = list(data)
        return data, reducer, None
    if not isinstance(reducer, Added):
        raise TypeError(f"a reducer is one of Reducer (Reducer.sum), not {reducer!r}")
    if reducer.weft is None:
        reducer.weft = WeftReducer.custom(reducer.merge)
    return data if reducer.pre is None else reducer.pre(data), reducer.weft, reducer.post


def charm_of_this_pe() -> Any:
    """Weft's proxy of this PE's `charm`."""
    from weft.charm4py._charm import charm

    return charm.thisProxy[_core.my_pe()]._weft


def finishing_target(reducer: Added, callback: Any) -> Any:
    """The target that applies `post` and calls the callback."""
    return charm_of_this_pe().m_finishReduction.bind(reducer.name, callback)
