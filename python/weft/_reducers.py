"""weft.Reducer, and how it merges Python values."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np

from weft import _core

_T = TypeVar("_T")

# As in weft::runtime::Reducer.
_SUM, _PRODUCT, _MIN, _MAX, _AND, _OR, _XOR, _GATHER, _CONCAT, _CUSTOM = range(10)


class Reducer:
    """How the contributions to a reduction become one value.

    ``sum``, ``product``, ``min``, ``max``, ``logical_and``, ``logical_or``, ``logical_xor`` take numbers (or
    anything with the operator) and NumPy arrays of one shape, element by element; the logical ones make
    bools. ``gather`` makes a list of all contributions in index order, ``concat`` one list or array of the
    elements of all.
    """

    __slots__ = ("_function_key", "_kind", "name")

    sum: ClassVar[Reducer]
    product: ClassVar[Reducer]
    min: ClassVar[Reducer]
    max: ClassVar[Reducer]
    logical_and: ClassVar[Reducer]
    logical_or: ClassVar[Reducer]
    logical_xor: ClassVar[Reducer]
    gather: ClassVar[Reducer]
    concat: ClassVar[Reducer]

    def __init__(self, name: str, kind: int, function_key: str = "") -> None:
        self.name = name
        self._kind = kind
        self._function_key = function_key

    @staticmethod
    def custom(function: Callable[[_T, _T], _T]) -> Reducer:
        """A reducer that merges two values with ``function(a, b)``, associative and commutative.

        Raises:
            weft.Error: it is not a function at the top level of a module, where every PE finds it.
        """
        return Reducer(f"custom({function.__qualname__})", _CUSTOM, _core._importable_key(function))

    def __repr__(self) -> str:
        return f"weft.Reducer.{self.name}"


for _kind, _name in enumerate(
    ("sum", "product", "min", "max", "logical_and", "logical_or", "logical_xor", "gather", "concat")
):
    setattr(Reducer, _name, Reducer(_name, _kind))


def truth(value: Any) -> Any:
    """What a logical reducer takes a contribution for: a bool, or an array of them."""
    return value.astype(bool) if isinstance(value, np.ndarray) else bool(value)


def merge(kind: int, a: Any, b: Any) -> Any:
    """Two contributions as one; called on the way up the tree."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _merge_arrays(kind, a, b)
    if kind == _SUM:
        return a + b
    if kind == _PRODUCT:
        return a * b
    if kind == _MIN:
        return b if b < a else a
    if kind == _MAX:
        return b if a < b else a
    if kind == _AND:
        return bool(a) and bool(b)
    if kind == _OR:
        return bool(a) or bool(b)
    return bool(a) != bool(b)


_UFUNCS: tuple[np.ufunc, ...] = (
    np.add,
    np.multiply,
    np.minimum,
    np.maximum,
    np.logical_and,
    np.logical_or,
    np.logical_xor,
)


def _merge_arrays(kind: int, a: Any, b: Any) -> Any:
    if np.shape(a) != np.shape(b):
        raise _core.Error(
            f"arrays of shapes {np.shape(a)} and {np.shape(b)} were contributed to one reduction; all must "
            "have the same shape, or use weft.Reducer.gather"
        )
    return _UFUNCS[kind](a, b)


def concat(parts: list[Any]) -> Any:
    """The elements of all parts: an array when all of them are, else a list."""
    if parts and all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return list(itertools.chain.from_iterable(parts))
