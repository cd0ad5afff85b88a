"""`charm4py.ray`: remote functions and actors, on the pool and on single chares.

A result is a future of the PE that called. A future that is an argument is awaited there; its value travels.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from weft import _core
from weft.charm4py._chare import Chare
from weft.charm4py._futures import Future, iwait
from weft.charm4py._threads import coro, run


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
    definition.remote = functools.partial(_when_known, functools.partial(_submitted, definition))
    return definition


def _submitted(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    from weft.charm4py._charm import charm

    result: Future = charm.pool._submit(function, *args, **kwargs)
    return result


def _when_known(call: Callable[..., Future], *args: Any, **kwargs: Any) -> Future:
    """Calls when the futures among the arguments are ready. Returns a future of the result.

    It gets the exception if one of them, or the call, fails.
    """
    result = Future()

    def whole() -> None:
        try:
            values = {name: _value(arg) for name, arg in kwargs.items()}
            value = call(*map(_value, args), **values).get()
        except Exception as error:
            value = error
        result.send(value)

    _core._spawn(run(whole), "a remote call of charm4py.ray")
    return result


def _value(argument: Any) -> Any:
    return argument.get() if isinstance(argument, Future) else argument


def _remote_class(definition: Any) -> type:
    @functools.wraps(definition.__init__)
    def init(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return definition.__init__(self, *args, **kwargs)

    def make(*args: Any, **kwargs: Any) -> _Actor:
        return _Actor(Chare(chare_class, args=(args, kwargs)))

    members: dict[str, Any] = {"__module__": definition.__module__, "__qualname__": definition.__qualname__}
    members |= {"__init__": init, "remote": staticmethod(make)}
    chare_class = type(definition.__name__, (Chare, definition), members)
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

    def remote(self, *args: Any, **kwargs: Any) -> Future:
        """Calls the method. Returns a future of its result."""
        return _when_known(functools.partial(self._method, ret=True), *args, **kwargs)
