"""weft.when: the condition under which an entry method runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from weft._chare.conditions import analyse

_MARK = "__weft_when__"  # kConditionMark of python/src/chare/classes/condition.cpp

_F = TypeVar("_F", bound=Callable[..., Any])

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (*_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)


def when(condition: Callable[..., object]) -> Callable[[_F], _F]:
    """Runs an entry method only when a condition holds. Until then the call waits in its chare.

        class Cell(weft.Chare):
            def __init__(self):
                self.iteration = 0

            @weft.when(lambda self, iteration: iteration == self.iteration)
            def ghost(self, iteration, values):
                ...

    The condition is called when a call arrives. If its result is true, the method runs at once. If not, the
    call waits. After each entry method of the chare, and each time that a coroutine of it has run up to an
    ``await``, the waiting calls are asked in order of arrival. The first whose condition holds runs, and then
    they are asked again from the first on.

    A condition that begins with an equality of an attribute and an argument, as above, costs nothing for
    calls that wait for another value. One that reads attributes and arguments alone is asked again when one
    of the attributes has changed. Both need Python's own numbers, strings, or tuples of them. Every other
    condition is called for each waiting call each time.

    Waiting calls move with their chare. If the collection is destroyed, they end with weft.Error. They count
    as handled: neither ``weft.quiescence()`` nor the sender waits for them.

    Args:
        condition: a function that gets the chare first, and then those arguments of the call that its other
            parameters name, by name. A parameter of another name needs a default value, which it keeps. It
            returns a value whose truth counts. It must not change the chare or the arguments, and is no
            coroutine.

    Returns:
        A decorator of an entry method, ordinary or ``async def``. A method that has a post entry method
        cannot have a condition.

    Raises:
        TypeError: when the class is defined, if the condition cannot be called so. What the condition raises
            goes to the caller of the entry method, which does not run then; if nothing awaits the call, it
            ends the job.
    """
    if not callable(condition):
        raise TypeError(
            "weft.when takes a function, as in @weft.when(lambda self, number: number == self.next), "
            f"not {condition!r}"
        )
    if inspect.iscoroutinefunction(condition):
        raise TypeError(f"the condition {_name(condition)} is a coroutine; a condition cannot wait")

    def mark(method: _F) -> _F:
        if isinstance(method, (staticmethod, classmethod)) or not callable(method):
            raise TypeError(f"weft.when decorates a method of a chare, not {method!r}")
        if hasattr(method, _MARK):
            raise TypeError(f"{_name(method)} has two conditions; join them with `and` in one")
        arguments = _arguments(condition, method)
        setattr(method, _MARK, (condition, arguments, *analyse(condition)))
        return method

    return mark


def _name(function: Callable[..., object]) -> str:
    return getattr(function, "__qualname__", repr(function))


def _arguments(
    condition: Callable[..., object], method: Callable[..., object]
) -> tuple[tuple[str, int, bool, object], ...]:
    """Of each argument that the condition gets: name, position in the call (-1: by name only), whether it has
    a default value, and that."""
    try:
        asked = list(inspect.signature(condition).parameters.values())
    except ValueError:
        raise TypeError(
            f"the parameters of the condition {condition!r} are not known; give weft.when a function"
        ) from None
    if not asked or asked[0].kind not in _POSITIONAL:
        raise TypeError(
            f"the condition of {_name(method)} needs the chare as its first parameter, as in "
            "@weft.when(lambda self, iteration: iteration == self.iteration)"
        )
    parameters = list(inspect.signature(method).parameters.values())
    known = {
        parameter.name: (position if parameter.kind in _POSITIONAL else -1, parameter.default)
        for position, parameter in enumerate(parameters)
        if position > 0 and parameter.kind in _NAMED
    }
    found = []
    for parameter in asked[1:]:
        if parameter.kind not in _NAMED or (
            parameter.kind is inspect.Parameter.POSITIONAL_ONLY and parameter.name in known
        ):
            raise TypeError(
                f"the condition of {_name(method)} gets its arguments by name, and its parameter {parameter} "
                "cannot; name the parameters of the method that it reads"
            )
        if parameter.name in known:
            position, default = known[parameter.name]
            has_default = default is not inspect.Parameter.empty
            found.append((parameter.name, position, has_default, default if has_default else None))
        elif parameter.default is inspect.Parameter.empty:
            names = ", ".join(known) or "none"
            raise TypeError(
                f"the condition of {_name(method)} has the parameter {parameter.name}, which the method does "
                f"not have; the method's parameters: {names}"
            )
    return tuple(found)
