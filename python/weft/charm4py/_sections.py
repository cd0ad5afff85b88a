"""Sections: some chares of a collection, or of several."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft import _core
from weft.charm4py._proxies import Proxy, proxy_class
from weft.charm4py._threads import wait


def split(
    proxy: Proxy,
    numsections: int,
    section_func: Callable[[Any], Any] | None = None,
    elems: Sequence[Any] | None = None,
) -> list[Proxy]:
    """Splits a collection into sections.

    Blocks if `section_func` is given: it is evaluated where the chares are.

    Args:
        proxy: of a group, an array or a section.
        numsections: how many sections.
        section_func: gets the chare, and returns the numbers of its sections: one, negative for none, or a
            list. Every PE must find it by its name.
        elems: in place of the function, the indices of each section.
    """
    if section_func is None:
        if elems is None:
            raise ValueError("charm.split needs section_func or elems")
        lists = elems if numsections > 1 or _is_nested(elems) else [elems]
        return [_section(proxy, sorted(_weft_index(index) for index in which)) for which in lists]
    found = wait(proxy._weft.w_sections.call(section_func))
    members: list[list[Any]] = [[] for _ in range(numsections)]
    for element, sections in zip(_elements_of(proxy), found, strict=True):
        for which in _numbers(sections):
            if not 0 <= which < numsections:
                raise ValueError(
                    f"charm.split: section_func gave the section {which} for {element!r}; it gives numbers "
                    f"from 0 to {numsections - 1}, or one negative number for none"
                )
            members[which].append(element)
    return [_of_elements(proxy, which) for which in members]


def combine(*proxies: Proxy) -> Proxy:
    """One section of the chares of several collections."""
    whole = _core.combine(*(proxy._weft for proxy in proxies))
    return proxy_class(proxies[0]._class)(whole, "section", True)


def _is_nested(elems: Sequence[Any]) -> bool:
    return bool(elems) and isinstance(elems[0], (list, set, frozenset))


def _weft_index(index: Any) -> Any:
    return index[0] if isinstance(index, tuple) and len(index) == 1 else index


def _numbers(sections: Any) -> list[int]:
    if isinstance(sections, Iterable):
        return list(sections)
    which = operator.index(sections)
    return [which] if which >= 0 else []


def _section(proxy: Proxy, indices: list[Any]) -> Proxy:
    whole = proxy._weft
    if isinstance(whole, _core.CombinedSection):
        raise _core.Error(
            "a combined collection is split with section_func, because indices occur twice in it"
        )
    owner = whole.collection if isinstance(whole, _core.Section) else whole
    return type(proxy)(owner.section(indices), "section", True)


def _elements_of(proxy: Proxy) -> list[Any]:
    return list(proxy._weft)


def _of_elements(proxy: Proxy, elements: list[Any]) -> Proxy:
    """The section of some elements of the proxy's collections."""
    if not isinstance(proxy._weft, _core.CombinedSection):
        return _section(proxy, [element.index for element in elements])
    by_collection: dict[Any, list[Any]] = {}
    for element in elements:
        by_collection.setdefault(element.collection, []).append(element.index)
    parts = [owner.section(indices) for owner, indices in by_collection.items()]
    return type(proxy)(_core.combine(*parts), "section", True)
