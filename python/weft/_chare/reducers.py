"""weft.Reducer, and how it merges Python values."""

from __future__ import annotations

import functools
import itertools
import numbers
import operator
import sys
from array import array
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from weft import _core

_T = TypeVar("_T")

# As in weft::runtime::Reducer.
_SUM, _PRODUCT, _MIN, _MAX, _AND, _OR, _XOR, _GATHER, _CONCAT, _CUSTOM = range(10)


class Reducer:
    """How the contributions to a reduction become one value.

    ``sum``, ``product``, ``min``, ``max``, ``logical_and``, ``logical_or``, ``logical_xor`` take numbers (or
    anything with the operator); and NumPy arrays of one shape, lists of numbers of one length and array.array
    of one length and type code, element by element. A number that the type code of an array.array does not
    hold raises OverflowError, where a NumPy array wraps. ``sum`` and ``product`` take bools as 0 and 1. The
    logical ones make bools: arrays of them of NumPy arrays, lists of them of lists and array.array. ``min``
    and ``max`` are NaN if any contribution is, whichever element contributes it. ``gather`` makes a list of
    all contributions in index order, ``concat`` one list or array of the elements of all.

    A contribution whose type would be lost is refused: masked arrays and other classes of arrays that do not
    say how NumPy's functions treat them, classes derived from list, and a sum of tuples or texts, which is no
    sum.

    Two reducers are equal if they do the same: the same operation or the same custom function.
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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reducer):
            return NotImplemented
        return (self._kind, self._function_key) == (other._kind, other._function_key)

    def __hash__(self) -> int:
        return hash((self._kind, self._function_key))

    def __repr__(self) -> str:
        return f"weft.Reducer.{self.name}"


_NAMES = ("sum", "product", "min", "max", "logical_and", "logical_or", "logical_xor", "gather", "concat")
for _kind, _name in enumerate(_NAMES):
    setattr(Reducer, _name, Reducer(_name, _kind))


#: Most contributions are of these types.
_SCALARS = frozenset({bool, int, float})
_LOGICAL = (_AND, _OR, _XOR)


def _is_array(value: object) -> bool:
    """NumPy is imported by programs that use it; without it there are no arrays."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def prepared(kind: int, value: Any) -> Any:
    """A contribution to any reducer but gather and custom ones, as it is sent.

    Args:
        kind: the reducer.
        value: the contribution.

    Raises:
        weft.Error: the reducer does not apply to it.
    """
    if type(value) in _SCALARS and kind != _CONCAT:
        return _counted(value) if kind in (_SUM, _PRODUCT) else bool(value) if kind in _LOGICAL else value
    name = _NAMES[kind]
    value = _expect_type_that_is_kept(kind, name, value)
    if kind == _CONCAT:
        return value
    if value is None or isinstance(value, list):
        _expect_numbers(name, value)
    if kind in (_SUM, _PRODUCT):
        return _counted(value)
    return truth(value) if kind in _LOGICAL else value


def _expect_type_that_is_kept(kind: int, name: str, value: Any) -> Any:
    """Refuses what would come back as another type, or as something that has lost a part of its meaning."""
    given = type(value)
    if _is_array(value):
        numpy = sys.modules["numpy"]
        if given is numpy.ndarray:
            return value
        if given is numpy.memmap:
            return numpy.asarray(value)
        hook = "__array_function__" if kind == _CONCAT else "__array_ufunc__"
        is_logical = kind in _LOGICAL
        if not is_logical and getattr(given, hook) is not getattr(numpy.ndarray, hook):
            return value  # it says itself what NumPy's function makes of it
        advice = "contribute plain arrays, such as a.filled(0) and a.count() of a masked array a"
    elif isinstance(value, (list, array)) and given not in (list, array):
        advice = "contribute a list"
    elif kind == _SUM and isinstance(value, (tuple, str, bytes, bytearray)):
        advice = "contribute a list of numbers, or join the values with weft.Reducer.concat"
    else:
        return value
    raise _core.Error(
        f"weft.Reducer.{name} does not keep what a {given.__module__}.{given.__qualname__} means: {advice}, "
        "or use weft.Reducer.gather or weft.Reducer.custom(function)"
    )


def _counted(value: Any) -> Any:
    """Bools as numbers, as for sum() and numpy.sum: NumPy's ``+`` of two bools is a logical or."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list):
        if _are_plain_numbers(value) or not any(map(_is_bool, value)):
            return value
        return list(map(_counted, value))
    return value.astype("int64") if _is_bool(value) else value


def _are_plain_numbers(values: list[Any]) -> bool:
    return {int, float, complex}.issuperset(map(type, values))


def _is_bool(value: object) -> bool:
    if isinstance(value, bool):
        return True
    numpy = sys.modules.get("numpy")
    return (
        numpy is not None
        and isinstance(value, (numpy.ndarray, numpy.generic))
        and bool(value.dtype.kind == "b")
    )


def _expect_numbers(name: str, value: list[Any] | None) -> None:
    """Refuses a list of other things than numbers, and None, before it is sent."""
    if value is None:
        raise _core.Error(
            f"None was contributed to weft.Reducer.{name}, which takes numbers; a reduction without a value "
            "has no reducer either: contribute(target=target)"
        )
    if _are_plain_numbers(value):
        return
    for position, element in enumerate(value):
        if not isinstance(element, numbers.Number) and getattr(element, "shape", None) != ():
            raise _core.Error(
                f"weft.Reducer.{name} takes lists of numbers, and element {position} of the one that was "
                f"contributed is of type {type(element).__name__}; use weft.Reducer.concat or gather, or "
                "weft.Reducer.custom(function)"
            )


def truth(value: Any) -> Any:
    """A contribution as a logical reducer takes it: a bool, or an array or a list of bools."""
    if _is_array(value):
        return value.astype(bool)
    return [bool(element) for element in value] if isinstance(value, (list, array)) else bool(value)


def merge(kind: int, a: Any, b: Any) -> Any:
    """Two contributions as one; called on the way up the tree."""
    if type(a) not in _SCALARS or type(b) not in _SCALARS:
        if _is_array(a) or _is_array(b):
            return _merge_arrays(kind, a, b)
        if isinstance(a, (list, array)) or isinstance(b, (list, array)):
            return _merge_sequences(kind, a, b)
    if kind == _SUM:
        return a + b
    if kind == _PRODUCT:
        return a * b
    if kind in (_MIN, _MAX):
        return _merge_extremes(kind, a, b)
    if kind == _AND:
        return bool(a) and bool(b)
    if kind == _OR:
        return bool(a) or bool(b)
    return bool(a) != bool(b)


def _merge_extremes(kind: int, a: Any, b: Any) -> Any:
    """NaN, the value that is unequal to itself, wins, as in numpy.minimum and numpy.maximum."""
    if a != a:
        return a
    if b != b:
        return b
    if kind == _MIN:
        return b if b < a else a
    return b if a < b else a


_OPERATORS: tuple[Callable[[Any, Any], Any], ...] = (
    operator.add,
    operator.mul,
    functools.partial(_merge_extremes, _MIN),
    functools.partial(_merge_extremes, _MAX),
    operator.and_,
    operator.or_,
    operator.ne,
)


def _describe(value: Any) -> str:
    if isinstance(value, array):
        return f"an array.array of type code {value.typecode!r} with {len(value)} elements"
    if isinstance(value, list):
        return f"a list of {len(value)} elements"
    return f"a value of type {type(value).__name__}"


def _merge_sequences(kind: int, a: Any, b: Any) -> Any:
    """Two lists, or two array.array of one type code, element by element."""
    alike = isinstance(a, list) and isinstance(b, list)
    if isinstance(a, array) and isinstance(b, array):
        alike = a.typecode == b.typecode
    if not alike or len(a) != len(b):
        raise _core.Error(
            f"{_describe(a)} and {_describe(b)} were contributed to one reduction; all must have the same "
            "type and length, or use weft.Reducer.concat or gather"
        )
    merged = map(_OPERATORS[kind], a, b)
    return array(a.typecode, merged) if isinstance(a, array) else list(merged)


_UFUNCS = ("add", "multiply", "minimum", "maximum", "logical_and", "logical_or", "logical_xor")


def _merge_arrays(kind: int, a: Any, b: Any) -> Any:
    import numpy as np

    if np.shape(a) != np.shape(b):
        raise _core.Error(
            f"arrays of shapes {np.shape(a)} and {np.shape(b)} were contributed to one reduction; all must "
            "have the same shape, or use weft.Reducer.gather"
        )
    return getattr(np, _UFUNCS[kind])(a, b)


def concat(parts: list[Any]) -> Any:
    """The elements of all parts: an array when all of them are, else a list."""
    if parts and all(map(_is_array, parts)):
        import numpy as np

        return np.concatenate(parts)
    return list(itertools.chain.from_iterable(parts))
