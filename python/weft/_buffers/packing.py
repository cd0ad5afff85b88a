"""weft.pack: C-contiguous arrays, packed where the array is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from weft import _core

_T = TypeVar("_T")


def pack(array: _T) -> _T:
    """An array of the same elements in C order: `array` itself if it is C-contiguous, else a copy.

    Weft sends and receives C-contiguous memory. The copy is made by the array's own library, on the array's
    device and on that library's current stream. The CPU does not wait for it, and a send of the copy starts
    after it: ``channel.send(weft.pack(a[:, 0]))``.

    An array in Fortran order need not be copied: its transpose, ``a.T``, is C-contiguous.

    Args:
        array: of NumPy, CuPy or PyTorch. Arrays of JAX and weft.DeviceArray are contiguous already.

    Returns:
        an array of the same library, shape and element type.

    Raises:
        weft.Error: an array that is not contiguous, of a library that Weft cannot ask for a copy.
    """
    if isinstance(array, _core.DeviceArray):
        return array
    for base in type(array).__mro__:
        packed = _PACKERS.get(base.__module__.partition(".")[0])
        if packed is not None:
            result: _T = packed(array)
            return result
    raise _core.Error(
        f"weft.pack got a {_type_name(array)}, of a library that it does not know; make a C-contiguous copy "
        "with that library"
    )


def _type_name(array: object) -> str:
    return f"{type(array).__module__}.{type(array).__qualname__}"


def _numpy(array: Any) -> Any:
    return array if array.flags.c_contiguous else array.copy(order="C")


def _cupy(array: Any) -> Any:
    if array.flags.c_contiguous:
        return array
    with array.device:  # CuPy copies to the current device
        return array.copy(order="C")


def _numba(array: Any) -> Any:
    if array.is_c_contiguous():
        return array
    raise _core.Error(
        f"weft.pack got a {_type_name(array)} that is not C-contiguous, and Numba has no copy that is; pass "
        "cupy.ascontiguousarray(cupy.asarray(array)), or fill a contiguous array with a kernel"
    )


def _contiguous(array: Any) -> Any:
    return array


#: By the name of the library's package.
_PACKERS: dict[str, Callable[[Any], Any]] = {
    "cupy": _cupy,
    "jax": _contiguous,
    "jaxlib": _contiguous,
    "numba": _numba,
    "numba_cuda": _numba,
    "numpy": _numpy,
    "torch": lambda tensor: tensor.contiguous(),
}
