"""Chares and their collections."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from weft import _core
from weft.charm4py import _elements, _reducers
from weft.charm4py._futures import Future, as_future
from weft.charm4py._proxies import Creation, Proxy, maps, proxy_class, snapshot, target_of
from weft.charm4py._threads import wait

_next_pe = 0


class Chare:
    """Base class of a program's objects. Every method of a subclass is an entry method.

    ``Chare(Type, args=[...], onPE=p)`` makes a single chare and returns its proxy.

    Attributes:
        thisIndex: the index in the collection: a tuple in an array, the PE in a group.
        thisProxy: the proxy of the collection; of the chare itself if it is a single one.
    """

    migratable = True
    thisIndex: Any
    thisProxy: Any
    _weft: Any

    def __new__(
        cls, chare_type: type | None = None, args: Sequence[Any] = (), onPE: int = -1, **_: Any
    ) -> Any:
        if cls is not Chare or chare_type is None:
            return object.__new__(cls)
        global _next_pe
        if onPE < 0:
            onPE = _next_pe = (_next_pe + 1) % _core.num_pes()
        return make_single(chare_type, args, onPE, "single")

    def contribute(self, data: Any, reducer: Any, callback: Any, section: Any = None) -> None:
        """Gives this chare's part of a reduction. Does not block.

        Args:
            data: the value, or None.
            reducer: of `Reducer`, or None if there is no value.
            callback: a Future, or a method of a proxy that is not called.
            section: the proxy of a section of which the chare is a member; None for the collection.
        """
        target = target_of(callback)
        value, weft_reducer, post = _reducers.prepared(reducer, data)
        if post is not None:
            target = _reducers.finishing_target(reducer, callback)
        self._weft.contribute(value, weft_reducer, target, section=self._section(section))

    def reduce(self, callback: Any, data: Any = None, reducer: Any = None, section: Any = None) -> None:
        """As `contribute`, with the callback first."""
        self.contribute(data, reducer, callback, section)

    def allreduce(self, data: Any = None, reducer: Any = None, section: Any = None) -> Future:
        """A reduction whose result every contributor gets, as a future."""
        of = self._section(section)
        value, weft_reducer, post = _reducers.prepared(reducer, data)
        if of is None and post is None:
            return as_future(self._weft.allreduce(value, weft_reducer))
        results = self.__dict__.setdefault("_weft_results", {})
        counts = self.__dict__.setdefault("_weft_counts", {})
        whole = self._weft.proxy if of is None else of
        number = counts[whole] = counts.get(whole, 0) + 1
        future: Any = _core.Future()
        results[whole, number] = future
        giver = _reducers.charm_of_this_pe() if of is None else of[0]
        target = giver.w_give_result.bind(whole, number, None if post is None else reducer.name)
        self._weft.contribute(value, weft_reducer, target, section=of)
        return as_future(future)

    def _section(self, section: Any) -> Any:
        if section is not None:
            return section._weft
        return self.thisProxy._weft if self._weft._shape == "constrained" else None

    def wait(self, condition: str) -> None:
        """Blocks until a condition of ``self`` holds, a text."""
        from weft.charm4py._conditions import holds

        if not holds(self._weft, condition):
            wait(self._weft.proxy[self._weft.index].w_wait.call(condition))

    def migrate(self, toPe: int) -> None:
        """Moves this chare when the running method has returned; not while one of its methods blocks."""
        self._weft.migrate(toPe)

    def migrated(self) -> None:
        """Runs after a move, on the new PE."""

    def setMigratable(self, migratable: bool) -> None:
        """Whether load balancing may move this chare."""
        self.migratable = migratable
        self._weft.pinned = not migratable

    def AtSync(self) -> None:
        """Says that this chare is ready for load balancing, after which `resumeFromSync` runs.

        Raises:
            weft.Error: the class neither has `resumeFromSync` nor calls AtSync in a method of its own.
        """
        if type(self._weft).resume_from_sync is _core.Chare.resume_from_sync:
            raise _core.Error(
                f"AtSync is called outside of the methods of {type(self).__qualname__}: "
                "define resumeFromSync in the class"
            )
        self._weft.at_sync()


class ArrayMap(Chare):
    """Base class of maps: ``procNum(index)`` says on which PE an element is made. Make a Group of it."""

    def procNum(self, index: tuple[int, ...]) -> int:
        raise NotImplementedError(f"{type(self).__qualname__} needs procNum(self, index)")


def make_single(cls: type, args: Sequence[Any], pe: int, shape: str) -> Proxy:
    _expect_chare(cls)
    element = _core.Singleton(_elements.element_class(cls), pe, args=(shape, snapshot(), tuple(args)))
    made = proxy_class(cls)(element, shape, False)
    made._created = Creation(element.collection.created())
    return made


def _expect_chare(cls: Any) -> None:
    if not isinstance(cls, type) or not issubclass(cls, Chare):
        raise TypeError(f"only classes that derive from Chare have chares, not {cls!r}")


def Group(chare_type: type, args: Sequence[Any] = (), onPEs: Sequence[int] | None = None) -> Any:
    """Makes one chare on each PE, or on each of `onPEs`. Does not block. Returns the proxy."""
    _expect_chare(chare_type)
    cls = _elements.element_class(chare_type)
    made = proxy_class(chare_type)
    if onPEs is None:
        group = _core.Group(cls, args=("group", snapshot(), tuple(args)))
        proxy = made(group, "group", True)
    else:
        pes = sorted(onPEs)
        group = _core.Group(cls, args=("constrained", snapshot(), tuple(args), pes))
        proxy = made(group.section(pes), "constrained", True)
    proxy._created = Creation(group.created())
    return proxy


def Array(
    chare_type: type,
    dims: int | Sequence[int] | None = None,
    ndims: int = -1,
    args: Sequence[Any] = (),
    map: Any = None,
    useAtSync: bool = False,
) -> Any:
    """Makes an array of chares. Does not block. Returns the proxy.

    Args:
        chare_type: the class, derived from Chare.
        dims: the extents. None: a sparse array of `ndims` dimensions, filled with ``proxy.ckInsert``.
        args: of the constructor.
        map: the proxy of a group of an ArrayMap.
        useAtSync: accepted; elements that call AtSync take part in load balancing.
    """
    _expect_chare(chare_type)
    if dims is None and ndims < 1:
        raise ValueError(
            "Array needs dims, the extents, or ndims, the number of dimensions of a sparse array"
        )
    cls = _elements.element_class(chare_type)
    place = None if map is None else _place_of(map)
    made = proxy_class(chare_type)
    if dims is None:
        array = _core.Array(cls, (1 << min(30, 62 // ndims),) * ndims, sparse=True, map="round_robin")
        if place is not None:
            maps[array] = place
        return made(array, "array", True)
    shape = (dims,) if isinstance(dims, int) else tuple(dims)
    whole = shape[0] if len(shape) == 1 else shape
    where: Any = "block" if place is None else place
    array = _core.Array(cls, whole, args=("array", snapshot(), tuple(args)), map=where)
    proxy = made(array, "array", True)
    proxy._created = Creation(array.created())
    return proxy


def _place_of(group: Any) -> Callable[[Any], int]:
    """The function of an ArrayMap, on this PE."""
    made = getattr(group, "_created", None)
    if made is not None and not made.done():
        wait(made.awaited())
    chosen = group.ckLocalBranch()
    return lambda index: operator.index(chosen.procNum(index if isinstance(index, tuple) else (index,)))
