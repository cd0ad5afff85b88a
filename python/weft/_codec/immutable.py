"""Which objects nothing can change, so that the chares of a PE may share them as arguments of one call.

The extension asks only about objects that pickle has made; it knows the other forms of values itself
(python/src/codec/decoder.cpp). An object counts as immutable if its exact type is known to be, or is a frozen
dataclass or a named tuple, and if all its parts are immutable too.
"""

from __future__ import annotations

import abc
import enum
import sys
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

from weft import _core

# A function that gives the parts of an object, or None if the object may be changed.
_Parts = Callable[[Any], "Iterable[object] | None"]
_METACLASSES = (type, abc.ABCMeta, enum.EnumMeta)


def is_immutable(value: object, most_parts: int) -> bool:
    """Whether nothing can change the value. False also if it has more than `most_parts` parts."""
    pending = [value]
    while pending:
        one = pending.pop()
        kind = type(one)
        if type(kind) not in _METACLASSES:
            return False  # the class of its class may do anything
        find_parts = _known.get(kind)
        if find_parts is None:
            find_parts = _parts_by_class(kind)
            if _global(kind) is not None:
                _known[kind] = find_parts
        parts = find_parts(one)
        if parts is None:
            return False
        pending.extend(parts)
        most_parts -= 1
        if most_parts < len(pending):
            return False
    return True


def _none(_: object) -> tuple[object, ...]:
    return ()


def _unknown(_: object) -> None:
    return None


def _global(value: Any) -> tuple[object, ...] | None:
    """A function or a class: pickle gives all elements the same object, if it is where its name says."""
    found: object = sys.modules.get(getattr(value, "__module__", None) or "")
    for name in getattr(value, "__qualname__", "<unnamed>").split("."):
        found = getattr(found, name, None)
    return () if found is value else None


def _member(value: enum.Enum) -> tuple[object, ...] | None:
    """A member of an enumeration, of which there is one in a process."""
    return () if type(value).__members__.get(value._name_) is value else None


def _range(value: range) -> tuple[object, ...]:
    return value.start, value.stop, value.step


def _slice(value: Any) -> tuple[object, ...]:
    return value.start, value.stop, value.step


def _named_tuple(value: tuple[object, ...]) -> Iterable[object]:
    return tuple.__iter__(value)


# The functions by class. The table keeps classes that can be found in their modules. A class that a program
# makes and forgets is not kept.
_known: dict[type, _Parts] = {
    **dict.fromkeys((type(None), bool, int, float, complex, str, bytes, type(...)), _none),
    **dict.fromkeys((_core.ElementProxy, _core.CollectionProxy, _core.EntryMethod), _none),
    **dict.fromkeys((_core.Section, _core.CombinedSection), _none),
    **dict.fromkeys((types.FunctionType, types.BuiltinFunctionType, *_METACLASSES), _global),
    tuple: iter,
    frozenset: iter,
    range: _range,
    slice: _slice,
}


def _parts_by_class(kind: type) -> _Parts:
    if type(kind) is enum.EnumMeta:
        return _member
    if _is_numpy_scalar(kind):
        return _none
    if kind.__base__ is tuple and "_fields" in vars(kind) and vars(kind).get("__slots__") == ():
        return _named_tuple
    return _parts_of_frozen(kind) or _unknown


def _is_numpy_scalar(kind: type) -> bool:
    """Of numbers, text, bytes and times; records (numpy.void) can be written to."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None or not issubclass(kind, numpy.generic) or issubclass(kind, (numpy.void, numpy.object_)):
        return False
    return getattr(numpy, kind.__name__, None) is kind


# The bases that a frozen dataclass may have beside others: they have no state.
_WITHOUT_STATE = (object, abc.ABC, typing.Generic)
# Attributes of a class that do not write into the object when they are read.
_HARMLESS = (
    *(types.FunctionType, classmethod, staticmethod, property),
    *(types.GetSetDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType),
)
_UNPICKLES = ("__reduce__", "__reduce_ex__", "__setstate__")


def _parts_of_frozen(kind: type) -> _Parts | None:
    """For objects of a frozen dataclass: all that they hold, which is in their slots and their __dict__."""
    slots: list[Any] = []
    for base in kind.__mro__:
        if base in _WITHOUT_STATE:
            continue
        attributes = vars(base)
        if not getattr(attributes.get("__dataclass_params__"), "frozen", False):
            return None
        if any(_is_own_unpickling(attributes.get(name)) for name in _UNPICKLES):
            return None
        for attribute in attributes.values():
            if isinstance(attribute, types.MemberDescriptorType):
                slots.append(attribute)
            elif hasattr(type(attribute), "__get__") and type(attribute) not in _HARMLESS:
                return None  # it may write into the object, as functools.cached_property does

    def parts(value: object) -> list[object]:
        try:
            found = list(object.__getattribute__(value, "__dict__").values())
        except AttributeError:  # it has slots only
            found = []
        for slot in slots:
            try:
                found.append(slot.__get__(value, kind))
            except AttributeError:  # not set
                continue
        return found

    return parts


def _is_own_unpickling(function: object) -> bool:
    # dataclass(slots=True) adds a __setstate__ that sets the fields.
    return function is not None and getattr(function, "__module__", None) != "dataclasses"
