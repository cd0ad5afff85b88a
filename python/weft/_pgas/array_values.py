"""Numbers, texts, records and lists of Python as NumPy arrays of a given type, without a loss of values."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any

from weft import _core

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Kinds of NumPy. A number may become one of a later kind, and an integer one of any kind.
NUMBERS = "biufc"
INTEGERS = "biu"
TEXTS = "SU"
TIMES = "Mm"


def converted(values: Any, dtype: np.dtype[Any], use: str) -> npt.NDArray[Any]:
    """An array of `dtype` with the values.

    Floats are rounded to the type. Ints are not, and no type of ints takes a float. A record is a tuple.

    Raises:
        weft.Error: the type does not hold a value. The text begins with `use`.
    """
    try:
        return _plain(values, dtype) if dtype.names is None else _records(values, dtype, use)
    except (TypeError, ValueError, OverflowError) as error:
        raise _core.Error(f"{use} takes no such values: {error}") from None


def _plain(values: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    import numpy as np

    given = np.asarray(values)
    if given.size == 0:
        return np.empty(given.shape, dtype)
    if dtype.kind in TIMES and given.dtype.kind in "OU":
        given = np.asarray(given, dtype.kind + "8")  # dates and their texts, in the unit that holds them
    if dtype.kind in INTEGERS and given.dtype.kind == "f":
        given = np.asarray(values, object)  # of uint64 and int64 together, for example
    kind = _kind_of_objects(given) if given.dtype.kind == "O" else given.dtype.kind
    why = _obstacle(kind, given.dtype, dtype)
    if not why:
        with np.errstate(over="ignore"):
            found = given.astype(dtype)
        if not _is_changed(kind, given, found):
            return found
        why = "the type does not hold the value"
    raise ValueError(f"{reprlib.repr(values)} cannot become {dtype}: {why}")


def _kind_of_objects(given: npt.NDArray[Any]) -> str:
    """NumPy makes an array of objects of ints that have more than 64 bits."""
    import numpy as np

    integers = (int, np.integer, np.bool_)
    floats = (*integers, float, np.floating)
    types = {type(value) for value in given.flat}
    for kind, accepted in (("i", integers), ("f", floats), ("c", (*floats, complex, np.complexfloating))):
        if all(issubclass(one, accepted) for one in types):
            return kind
    return "O"


def _obstacle(kind: str, given: np.dtype[Any], dtype: np.dtype[Any]) -> str:
    """Why no value of that type becomes one of `dtype`; empty if some do."""
    if dtype.kind in NUMBERS:
        is_fit = kind in NUMBERS and (
            NUMBERS.index(kind) <= NUMBERS.index(dtype.kind) or (kind in INTEGERS and dtype.kind in INTEGERS)
        )
        return "" if is_fit else "it is no number that the type holds"
    if dtype.kind in TEXTS and kind in TEXTS:
        length, most = _characters(given), _characters(dtype)
        return f"it has {length} characters, and the type has {most}" if length > most else ""
    if dtype.kind == "V":
        return "" if kind in "SV" and given.itemsize <= dtype.itemsize else "it does not have such bytes"
    return "" if kind == dtype.kind else "the types have nothing in common"


def _characters(text: np.dtype[Any]) -> int:
    return text.itemsize // 4 if text.kind == "U" else text.itemsize


def _is_changed(kind: str, given: npt.NDArray[Any], found: npt.NDArray[Any]) -> bool:
    import numpy as np

    if kind in INTEGERS:
        return bool(found.tolist() != given.tolist())  # numbers of Python, which compare exactly
    if kind in "fc":
        numbers = given.astype(complex) if given.dtype.kind == "O" else given
        return bool((np.isfinite(numbers) & ~np.isfinite(found)).any())
    if kind in TIMES:
        return bool(((found != given) & ~(np.isnat(found) & np.isnat(given))).any())
    return False


def _records(values: Any, dtype: np.dtype[Any], use: str) -> npt.NDArray[Any]:
    import numpy as np

    names = dtype.names or ()
    shape, records = _flattened(values)
    for record in records:
        is_record = isinstance(record, tuple | np.void)
        if not is_record or len(record) != len(names):
            raise ValueError(
                f"{reprlib.repr(record)} cannot become {dtype}: a record is a tuple of {len(names)} values"
            )
    found = np.zeros(len(records), dtype)
    for place, name in enumerate(names):
        field, extents = dtype[name].subdtype or (dtype[name], ())
        column = converted([record[place] for record in records], field, use)
        if records and column.shape != (len(records), *extents):
            raise ValueError(
                f"the field {name} of {dtype} takes values of shape {extents}, not {column.shape[1:]}"
            )
        if records:
            found[name] = column
    return found.reshape(shape)


def _flattened(values: Any) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of nested lists, and what they hold."""
    if not isinstance(values, list):
        return (), [values]
    parts = [_flattened(value) for value in values]
    if len({shape for shape, _ in parts}) > 1:
        raise ValueError(f"{reprlib.repr(values)} holds lists of different lengths")
    inner = parts[0][0] if parts else ()
    return (len(values), *inner), [one for _, found in parts for one in found]
