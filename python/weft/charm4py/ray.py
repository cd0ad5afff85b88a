"""`charm4py.ray`: remote functions and actors, on the pool and on single chares.

A result is a future of the PE that called. A future that is an argument is awaited there; its value travels.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from weft import _core
from weft.charm4py._chare import Chare
from weft.charm4py._futures import Future, as_future, iwait
from weft.charm4py._threads import coro, run

_next_pe = 0


def init() -> None:
    """Accepted: there is nothing to start."""


def put(obj: Any) -> Future:
    """A future that has the object."""
    made = Future()
    made.send(obj)
    return made


def get(futures: Any) -> Any:
    """The value of a future, or the list of those of several. Blocks."""
    return futures.get() if isinstance(futures, Future) else [future.get() for future in futures]


def wait(futs: Sequence[Future], num_returns: int = 1) -> tuple[list[Future], list[Future]]:
    """Blocks until so many futures are ready. Returns those, and the others."""
    ready: list[Future] = []
    if num_returns > 0:
        for future in iwait(futs):
            ready.append(future)
            if len(ready) == num_returns:
                break
    return ready, [future for future in futs if future not in ready]


def remote(definition: Any) -> Any:
    """Decorator. A function gets an attribute ``remote``; ``remote`` of a class makes an actor."""
    if inspect.isclass(definition):
        return _remote_class(definition)
    coro(definition)
    definition.remote = lambda *args: _when_known(args, lambda values: _submitted(definition, values))
    return definition


def _submitted(function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    from weft.charm4py._charm import charm

    return charm.pool.Task(function, values, ret=True)._weft


def _when_known(args: tuple[Any, ...], call: Callable[[tuple[Any, ...]], Any]) -> Future:
    """Calls when the futures among the arguments are ready. Returns a future of the result."""
    result = Future()

    def whole() -> None:
        values = tuple(arg.get() if isinstance(arg, Future) else arg for arg in args)
        called = as_future(call(values))
        try:
            value = called.get()
        except Exception as error:
            value = error
        result.send(value)

    _core._spawn(run(whole), "a remote call of charm4py.ray")
    return result


def _remote_class(definition: Any) -> type:
    members = {"__module__": definition.__module__, "__qualname__": definition.__qualname__}
    chare_class = type(definition.__name__, (Chare, definition), {**members, "__init__": definition.__init__})

    def make(*args: Any) -> _Actor:
        global _next_pe
        _next_pe = (_next_pe + 1) % _core.num_pes()
        return _Actor(Chare(chare_class, args=args, onPE=_next_pe))

    chare_class.remote = staticmethod(make)  # type: ignore[attr-defined]
    return chare_class


class _Actor:
    def __init__(self, proxy: Any) -> None:
        self._proxy = proxy

    def __getattr__(self, name: str) -> _ActorMethod:
        if name.startswith("__"):
            raise AttributeError(name)
        return _ActorMethod(self._proxy, name)


class _ActorMethod:
    def __init__(self, proxy: Any, name: str) -> None:
        self._method = getattr(proxy, name)

    def remote(self, *args: Any) -> Future:
        """Calls the method. Returns a future of its result."""
        return _when_known(args, lambda values: self._method(*values, ret=True)._weft)
