"""Proxies of charm4py: for each chare class one class, over proxies of Weft."""

from __future__ import annotations

import itertools
from typing import Any

from weft import _core
from weft.charm4py import _elements
from weft.charm4py._conditions import condition_of
from weft.charm4py._futures import Future, as_future
from weft.charm4py._threads import in_thread, wait

_made: dict[type, type[Proxy]] = {}
_section_numbers = itertools.count()

#: By the proxy of a sparse array that this PE has made, where its elements are inserted.
maps: dict[Any, Any] = {}


#: With charm.options.ordered: by proxy of a chare, how many calls this PE has sent to it. None without.
sent: dict[Any, int] | None = None


_SECTIONS = ("section", "constrained")
#: So many chares of a collection a proxy knows.
_MOST_KNOWN = 1024
_no_proxies: dict[Any, Proxy] = {}


class Proxy:
    """Names a chare, a collection or a section.

    Attributes:
        _weft: the proxy of Weft.
        _shape: "group", "array", "single", "main", "section" or "constrained".
        _several: whether it names several chares.
        _sid: of a section, the PE that has made it and a number.
        _known: of a collection, proxies of its chares by index: programs name the same ones again and again.
        _entries: of these and the collection, entry methods of Weft by name; else None.
    """

    __slots__ = ("_created", "_entries", "_known", "_several", "_shape", "_sid", "_weft")
    _class: type = object

    def __init__(self, proxy: Any, shape: str, several: bool, sid: tuple[int, int] | None = None) -> None:
        self._weft = proxy
        self._shape = shape
        self._several = several
        self._known: dict[Any, Proxy] = _no_proxies
        self._entries: dict[str, Any] | None = None
        if not several:
            self._sid = sid
        elif shape in _SECTIONS:
            self._sid = (_core.my_pe(), next(_section_numbers)) if sid is None else sid
        else:
            self._sid = sid
            self._known = {}
            self._entries = {}

    def __reduce__(self) -> Any:
        return _unpickled, (self._class, self._weft, self._shape, self._several, self._sid)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Proxy) and bool(self._weft == other._weft)

    def __hash__(self) -> int:
        return hash(self._weft)

    def __repr__(self) -> str:
        return f"<charm4py proxy of {self._weft!r}>"

    def __getitem__(self, index: Any) -> Any:
        is_cached = self._known is not _no_proxies and _names_a_chare(index)
        if is_cached:
            known = self._known.get(index)
            if known is not None:
                return known
        given = index
        if isinstance(index, tuple) and len(index) == 1:
            index = index[0]
        if isinstance(index, slice) or (isinstance(index, tuple) and isinstance(index[0], slice)):
            return type(self)(self._weft[index], "section", True)
        owner = self._weft.collection if self._shape == "constrained" or not self._several else self._weft
        made = type(self)(owner[index], self._shape, False)
        if is_cached and len(self._known) < _MOST_KNOWN:
            made._entries = {}
            self._known[given] = made
        return made

    @property
    def issec(self) -> bool:
        """Whether it names a section."""
        return self._shape in _SECTIONS and self._several

    @property
    def section(self) -> Any:
        """The PE that made the section, and its identity."""
        return (None if self._sid is None else self._sid[0]), self._sid

    def ckLocalBranch(self) -> Any:
        """The object of this PE, of a group."""
        whole = self._weft if self._several and self._shape == "group" else self._weft.collection
        try:
            return _elements.local_objects[whole]
        except KeyError:
            raise _core.Error(
                f"{self!r} has no object on PE {_core.my_pe()}: wait for its creation (charm.awaitCreation), "
                "and ask on one of its PEs (onPEs)"
            ) from None

    def ckInsert(
        self,
        index: Any,
        args: Any = (),
        onPE: int = -1,
        useAtSync: bool = False,
        single: bool = False,
    ) -> None:
        """Inserts an element into an array that was made with `ndims`. Does not block."""
        if isinstance(index, tuple) and len(index) == 1:
            index = index[0]
        place = maps.get(self._weft)
        pe = onPE if onPE >= 0 else None
        if pe is None and place is not None:
            pe = place(index)
        self._weft.insert(index, "array", snapshot(), tuple(args), pe=pe)

    def ckDoneInserting(self) -> None:
        """Says that elements have been inserted. Does not block; calls with results wait for it."""
        self._created = Creation(self._weft.done_inserting())

    def _counted(self) -> None:
        """Waits until the elements of a sparse array are counted, which calls with results need."""
        made = getattr(self, "_created", None)
        if made is not None and in_thread():
            if not made.done():
                wait(made.awaited())
            del self._created


def _names_a_chare(index: Any) -> bool:
    """Whether it is the index of one chare in its usual form."""
    return type(index) is int or (type(index) is tuple and all(type(part) is int for part in index))


class Creation:
    """The creation of a collection.

    An exception in a constructor ends the job, unless the creation is awaited by then.
    """

    __slots__ = ("_awaited", "_future")

    def __init__(self, future: Any) -> None:
        self._future = future
        self._awaited = False
        future.then(self._arrived)

    def done(self) -> bool:
        return bool(self._future.done())

    def awaited(self) -> Any:
        """Its future, for one who waits for it and gets the exception."""
        self._awaited = True
        return self._future

    def _arrived(self, future: Any) -> None:
        if not self._awaited:
            future.result()


def snapshot() -> dict[str, Any] | None:
    """The readonlies that travel with a creation."""
    return dict(_elements.readonlies) if _elements.readonlies and _core.my_pe() == 0 else None


def proxy_class(cls: type) -> type[Proxy]:
    """The class of the proxies of a chare class."""
    made = _made.get(cls)
    if made is None:
        members: dict[str, Any] = {"__slots__": (), "_class": cls, "__module__": cls.__module__}
        members.update(
            {
                name: _method(name, condition_of(getattr(cls, name)) is not None)
                for name in _elements.method_names(cls)
            }
        )
        made = _made[cls] = type(f"{cls.__name__}Proxy", (Proxy,), members)
    return made


def _method(name: str, has_condition: bool) -> Any:
    plain, dropped, values = f"m_{name}", f"a_{name}", f"r_{name}"

    def method(self: Proxy, *args: Any, awaitable: bool = False, ret: bool = False, **kwargs: Any) -> Any:
        proxy = self._weft
        if sent is not None and not self._several and not has_condition:
            return _ordered(
                proxy, dropped if awaitable and not ret else plain, awaitable or ret, args, kwargs
            )
        if not (ret or awaitable):
            entries = self._entries
            if entries is None:
                getattr(proxy, plain)(*args, **kwargs)
                return None
            entry = entries.get(plain)
            if entry is None:
                entry = entries[plain] = getattr(proxy, plain)
            entry(*args, **kwargs)
            return None
        if self._several and self._shape == "array":
            self._counted()
        if not ret:
            future = getattr(proxy, dropped).call(*args, **kwargs)
            return _without_value(future) if self._several else as_future(future)
        return as_future(getattr(proxy, values if self._several else plain).call(*args, **kwargs))

    method.__name__ = name
    return method


def _ordered(proxy: Any, entry: str, result: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call that runs after those that this PE has sent to the chare before."""
    assert sent is not None
    number = sent.get(proxy, 0)
    call = proxy.w_ordered.call if result else proxy.w_ordered
    future = call(_core.my_pe(), number, entry, args, kwargs)
    sent[proxy] = number + 1  # a call that could not be sent has no number
    return as_future(future) if result else None


class _EmptyFuture(Future):
    """Of an awaited call to several chares, whose value is None and not a list of them."""

    __slots__ = ()

    def get(self) -> None:
        super().get()

    def __reduce__(self) -> Any:
        return _without_value, (self._weft,)


def _without_value(future: Any) -> Future:
    made = _EmptyFuture.__new__(_EmptyFuture)
    made._weft = future
    return made


def _unpickled(cls: type, proxy: Any, shape: str, several: bool, sid: tuple[int, int] | None) -> Proxy:
    return proxy_class(cls)(proxy, shape, several, sid)


def enter_collection(obj: Any, element: _elements.Element, shape: str) -> None:
    """Gives a new object its index and its proxy."""
    index = element.index
    obj.thisIndex = index if isinstance(index, tuple) or shape in ("group", "constrained") else (index,)
    whole: Any = element.proxy
    if element._pes is not None:
        whole = whole.section(element._pes)
    made = proxy_class(type(obj))
    if shape in ("single", "main"):
        obj.thisProxy = made(whole[element.index], shape, False)
    else:
        obj.thisProxy = made(whole, shape, True)


def target_of(callback: Any) -> Any:
    """What Weft takes as the target of a reduction: a future or an entry method."""
    if isinstance(callback, Future):
        return callback._weft
    proxy = getattr(callback, "__self__", None)
    if isinstance(proxy, Proxy):
        return getattr(proxy._weft, f"m_{callback.__name__}")
    raise TypeError(
        f"a callback is a Future, or a method of a proxy that is not called (proxy.method), not {callback!r}"
    )
