"""How the entry methods of a class can be called, and what they say of themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect import Signature

_VARIABLE_POSITIONAL = 0x04  # inspect.CO_VARARGS
_VARIABLE_KEYWORDS = 0x08  # inspect.CO_VARKEYWORDS


def function_of(
    cls: type, name: str
) -> tuple[FunctionType, int, int, int, tuple[str | None, ...], int] | None:
    """The method; how many positional arguments suffice and fit behind the chare; and its parameters there.

    Of these: how many can be given by position, all names, and bits of those that are needed. A parameter
    that cannot be named has no name. A method with more than 64 has no list of names. If a method needs
    keywords, no number of positional arguments suffices.

    None for what is no function of Python, such as a static method.
    """
    found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    if type(found) is not FunctionType:
        return None
    code = found.__code__
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    needed_keywords = [name for name in keywords if name not in (found.__kwdefaults__ or {})]
    num_positional = max(code.co_argcount - 1, 0)
    num_needed = max(code.co_argcount - len(found.__defaults__ or ()) - 1, 0)
    least = sys.maxsize if needed_keywords else num_needed
    most = sys.maxsize if code.co_flags & _VARIABLE_POSITIONAL else code.co_argcount - 1
    names: list[str | None] = list(code.co_varnames[1 : code.co_argcount])
    num_unnamed = max(code.co_posonlyargcount - 1, 0)
    names[:num_unnamed] = [None] * num_unnamed
    names += keywords
    needed = (1 << num_needed) - 1
    needed |= sum(1 << names.index(name, num_positional) for name in needed_keywords)
    if len(names) > 64:
        return found, least, most, 0, (), 0
    return found, least, most, num_positional, tuple(names), needed


def without_body(function: FunctionType) -> FunctionType:
    """A function that takes the same arguments and does nothing. Python refuses the same calls of it."""
    code, empty = function.__code__, _nothing.__code__
    variable = code.co_flags & (_VARIABLE_POSITIONAL | _VARIABLE_KEYWORDS)
    count = code.co_argcount + code.co_kwonlyargcount + variable.bit_count()
    made = FunctionType(
        empty.replace(
            co_flags=empty.co_flags | variable,
            co_argcount=code.co_argcount,
            co_posonlyargcount=code.co_posonlyargcount,
            co_kwonlyargcount=code.co_kwonlyargcount,
            co_nlocals=count,
            co_varnames=code.co_varnames[:count],
        ),
        {},
    )
    made.__defaults__ = function.__defaults__
    made.__kwdefaults__ = function.__kwdefaults__
    made.__name__ = function.__name__
    made.__qualname__ = function.__qualname__
    return made


def _nothing() -> None:
    pass


class OfMethod:
    """An attribute of an entry method that the method of the class gives; weft.EntryMethod has its own."""

    __module__ = "weft"

    def __init__(self, own: object, read: Callable[[type, str, int], object]) -> None:
        self._own = own
        self._read = read

    def __get__(self, entry: Any, owner: object = None) -> Any:
        return self._own if entry is None else self._read(*entry._described())


def describe(entry_method: type) -> None:
    """Gives weft.EntryMethod its attributes of this kind."""
    for name, read in (("__doc__", _doc_of), ("__signature__", _signature_of)):
        setattr(entry_method, name, OfMethod(getattr(entry_method, name, None), read))


def _doc_of(cls: type, name: str, num_bound: int) -> str | None:
    import inspect

    return inspect.getdoc(getattr(cls, name))


def _signature_of(cls: type, name: str, num_bound: int) -> Signature:
    """The parameters that follow the chare and the bound arguments, and the result of the method."""
    import inspect

    method = getattr(cls, name)
    if function_of(cls, name) is not None:
        method = MethodType(method, cls)
    return inspect.signature(partial(method, *[None] * num_bound))
