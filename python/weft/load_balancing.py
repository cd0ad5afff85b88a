"""Load-balancing strategies as Python functions.

    @weft.load_balancing.strategy("heaviest_first")
    def heaviest_first(snapshot):
        times = list(snapshot.background_load_s)
        pes = snapshot.pes()
        ...
        return pes

``weft run --lb heaviest_first`` then chooses it. All PEs run the script up to weft.run(), which looks for the
strategy: register it before. ``weft lb FILE --strategy FILE.py:heaviest_first`` tries it on recorded loads.
"""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import SupportsIndex, TypeVar

from weft import _core

__all__ = ["CommunicationEdge", "ObjectLoad", "Snapshot", "Strategy", "register", "strategy"]


@dataclass(slots=True)
class ObjectLoad:
    """A chare, as its PE has reported it."""

    #: the number of its collection; no two objects of a snapshot have the same collection and index
    collection: int
    #: its index in the collection, in row-major order if the collection has several dimensions
    index: int
    #: where it is
    pe: int
    #: the seconds that it takes on a PE of speed 1, by device time if devices are the busier resource,
    #: or what it has set with set_load_s()
    load_s: float
    #: the bytes of its state; 0: not known
    size_bytes: int
    #: False: it stays on its PE
    can_move: bool


@dataclass(slots=True)
class CommunicationEdge:
    """What one object has sent to another one. The ends are positions in Snapshot.objects."""

    source: int
    target: int
    messages: int
    bytes: int


@dataclass(slots=True)
class Snapshot:
    """What a strategy decides on."""

    num_pes: int
    #: one for each PE: the seconds that it spends on work that cannot move, besides the objects
    background_load_s: list[float]
    #: one for each PE: how fast it is; an object takes load_s / speed there
    pe_speed: list[float]
    objects: list[ObjectLoad]
    #: empty unless the strategy was registered with ``communication=True`` or the job records its loads
    edges: list[CommunicationEdge]

    def pes(self) -> list[int]:
        """A new list with the PE of each object. A strategy that returns it moves nothing."""
        return [item.pe for item in self.objects]


#: Gets a snapshot and returns the new PE of each object, in the order of Snapshot.objects.
Strategy = Callable[[Snapshot], Iterable[SupportsIndex]]
_AnyStrategy = TypeVar("_AnyStrategy", bound=Strategy)

_functions: dict[str, Strategy] = {}
_reads_communication: dict[str, bool] = {}


def strategy(name: str, *, communication: bool = False) -> Callable[[_AnyStrategy], _AnyStrategy]:
    """Registers the function below it as a strategy, see register(). The function itself does not change.

    Args:
        name: what ``--lb`` names it: 1 to 64 letters, digits and underscores.
        communication: True: the function reads Snapshot.edges.

    Raises:
        weft.Error: as register().
    """

    _check_name(name)

    def decorate(function: _AnyStrategy) -> _AnyStrategy:
        register(name, function, communication=communication)
        return function

    return decorate


def register(name: str, function: Strategy, *, communication: bool = False) -> None:
    """Makes ``function`` a load-balancing strategy that ``weft run --lb name`` (WEFT_LB) may choose.

    Every PE must register it before weft.run(), which refuses a name that it does not know. The function runs
    at sync points, on the PE that has made the collection, and nothing else runs there meanwhile. It decides
    from the snapshot alone: it sends nothing and keeps no chare. If it raises, or if what it returns does not
    fit the snapshot, the job ends with an error that names it. A second registration replaces the function if
    it comes from the same line of a file: a module may be loaded twice.

    Args:
        name: 1 to 64 letters, digits and underscores, the first of them not a digit.
        function: called with a Snapshot. It returns one PE for each object, in the order of Snapshot.objects:
            a list or another sequence of integers. An object with ``can_move=False`` keeps its PE.
        communication: True: the function reads Snapshot.edges, so a job that chooses it counts the messages
            between its chares, which takes time. False: the edges are empty, unless loads are recorded.

    Raises:
        weft.Error: the name is none, or taken, or was registered with another ``communication``; or
            ``function`` cannot be called.
    """
    _check_name(name)
    if not callable(function):
        raise _core.Error(
            f"the load-balancing strategy '{name}' is a {type(function).__name__}, which cannot be called; "
            "give a function of a snapshot"
        )
    known = _functions.get(name)
    if known is None or (known is not function and _origin(known) != _origin(function)):
        _core._register_strategy(name, communication)  # refuses a name that is taken
        _reads_communication[name] = communication
    elif _reads_communication[name] != communication:
        raise _core.Error(
            f"the load-balancing strategy '{name}' is registered with communication={not communication}; "
            "register it once"
        )
    _functions[name] = function


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise _core.Error(
            f"the name of a load-balancing strategy is a str, not a {type(name).__name__}; "
            'write @weft.load_balancing.strategy("name")'
        )


def _origin(function: Strategy) -> tuple[str, int] | int:
    """Where the function is written; for an object that can be called, the object."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return id(function) if code is None else (os.path.realpath(code.co_filename), code.co_firstlineno)


_Rows = tuple[
    int,
    list[float],
    list[float],
    Iterable[tuple[int, int, int, float, int, bool]],
    Iterable[tuple[int, int, int, int]],
]


def _decide(function: Strategy, rows: _Rows) -> list[int]:
    """Calls the function. The extension module checks the PEs."""
    num_pes, background_load_s, pe_speed, objects, edges = rows
    snapshot = Snapshot(
        num_pes,
        background_load_s,
        pe_speed,
        [ObjectLoad(*row) for row in objects],
        [CommunicationEdge(*row) for row in edges],
    )
    count = len(snapshot.objects)  # the function may change the snapshot, which is its own
    result = function(snapshot)
    values = list(result) if isinstance(result, Iterable) else [None]
    try:
        pes = [operator.index(pe) for pe in values]
    except TypeError:
        raise TypeError(
            f"a load-balancing strategy returns one PE for each object, a list of integers; it has returned "
            f"{_shown(result)}"
        ) from None
    if len(pes) != count:
        raise ValueError(
            f"a load-balancing strategy returns one PE for each object; it has returned {len(pes)} for "
            f"{count} objects"
        )
    # The extension module checks the others, and names the object.
    for number in (number for number, pe in enumerate(pes) if not -(2**31) <= pe < 2**31):
        raise ValueError(
            f"the PE of object number {number} in the list is {pes[number]}; expected 0 to {num_pes - 1}"
        )
    return pes


def _shown(value: object) -> str:
    """The value with its type, cut."""
    text = repr(value)
    return f"the {type(value).__name__} {text[:60]}{'...' if len(text) > 60 else ''}"
