"""Objects that speak the array protocols as other libraries do, for tests of who listens."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any


class CudaArray:
    """Speaks the CUDA array interface."""

    def __init__(self, **interface: Any) -> None:
        self.__cuda_array_interface__ = interface


class CudaArrayWithBuffer(bytearray):
    """Has the buffer protocol too, as CuPy's arrays; theirs raises when they are in device memory."""

    def __init__(self, **interface: Any) -> None:
        super().__init__(8)
        self.__cuda_array_interface__ = interface


class BrokenCudaArray:
    @property
    def __cuda_array_interface__(self) -> Any:
        raise RuntimeError("requires grad")


class Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("ordinal", ctypes.c_int32))


class DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter))


class ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.argtypes = (ctypes.py_object, ctypes.c_char_p)
# Capsules keep pointing at their names.
_NAMES = {
    name: ctypes.create_string_buffer(name)
    for name in (
        b"dltensor",
        b"used_dltensor",
        b"dltensor_versioned",
        b"used_dltensor_versioned",
        b"dlpack_exchange_api",
        b"other",
    )
}
FLOAT, INT, BFLOAT, COMPLEX, CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 2, 0, 4, 5, 1, 2, 3, 13


class DlpackArray:
    """Speaks DLPack: records the arguments of each export, and counts the tensors that were released."""

    def __init__(
        self,
        address: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        *,
        dtype: tuple[int, int, int] = (FLOAT, 64, 1),
        device: tuple[int, int] = (CPU, 0),
        byte_offset: int = 0,
        version: tuple[int, int] | None = (1, 0),
        flags: int = 0,
        name: bytes | None = None,
        deletes: bool = True,
    ) -> None:
        self.device = device
        self.version = version
        self.deleted = 0
        self.asked: list[dict[str, Any]] = []
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        self._strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        self._name = name or (b"dltensor" if version is None else b"dltensor_versioned")
        self._managed = Managed() if version is None else ManagedVersioned()
        tensor = self._managed.tensor
        tensor.data, tensor.byte_offset, tensor.ndim = address, byte_offset, len(shape)
        tensor.device, tensor.dtype = Device(*device), DataType(*dtype)
        tensor.shape = self._shape
        if self._strides is not None:
            tensor.strides = self._strides
        if isinstance(self._managed, ManagedVersioned) and version is not None:
            self._managed.major, self._managed.minor, self._managed.flags = *version, flags
        self._deleter = Deleter(self._delete)
        if deletes:
            self._managed.deleter = self._deleter

    def _delete(self, managed: int) -> None:
        assert managed == ctypes.addressof(self._managed)
        self.deleted += 1

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **keywords: Any) -> Any:
        self.asked.append(keywords)
        if self.version is None and "max_version" in keywords:
            raise TypeError("unexpected keyword argument 'max_version'")
        # A capsule without a destructor: only the consumer of the tensor calls the deleter.
        return _new_capsule(ctypes.addressof(self._managed), _NAMES[self._name], None)


class ExchangeTable(ctypes.Structure):
    """DLPack's table of C functions."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("managed_from_object", ctypes.c_void_p),
        ("object_from_managed", ctypes.c_void_p),
        ("tensor_from_object", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    )


_Export = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
_View = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
_WorkStream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
#: Returns -1 with a TypeError for objects without a length.
REFUSES = ctypes.cast(ctypes.pythonapi.PyObject_Size, ctypes.c_void_p).value


class ExchangedArray(DlpackArray):
    """As PyTorch's tensors from 2.10 on: the type has DLPack's table of C functions. Counts their calls."""

    work_stream: int | None = None
    exports = 0

    @property
    def __cuda_array_interface__(self) -> Any:
        raise KeyError("a type that NumPy lacks")


@_Export
def _export(array: ExchangedArray, out: Any) -> int:
    array.exports += 1
    out[0] = ctypes.addressof(array._managed)
    return 0


@_View
def _view(array: ExchangedArray, out: Any) -> int:
    out[0] = array._managed.tensor
    return 0


@_WorkStream
def _work_stream(_type: int, _device: int, out: Any) -> int:
    out[0] = ExchangedArray.work_stream
    return 0


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


def exchange_table(**changes: Any) -> ExchangeTable:
    functions = {
        "managed_from_object": _address(_export),
        "tensor_from_object": _address(_view),
        "current_work_stream": _address(_work_stream),
    }
    return ExchangeTable(**{"major": 1, "minor": 3, **functions, **changes})


def type_with(table: ExchangeTable, name: bytes = b"dlpack_exchange_api") -> type[ExchangedArray]:
    capsule = _new_capsule(ctypes.addressof(table), _NAMES[name], None)
    return type("Exchanged", (ExchangedArray,), {"__dlpack_c_exchange_api__": capsule, "table": table})


def take_out_of(capsule: Any, name: bytes) -> int:
    """The address of the tensor in a DLPack capsule, which is then ours to delete."""
    pointer: int = _get_pointer(capsule, name)
    _set_name(capsule, _NAMES[b"used_" + name])
    return pointer


def c_strides(shape: tuple[int, ...], item: int = 1) -> tuple[int, ...]:
    """The strides of C order, in units of which an element has `item`."""
    counts = [max(extent, 1) for extent in shape]
    sizes = list(itertools.accumulate(reversed([*counts[1:], item]), lambda a, b: a * b)) if shape else []
    return tuple(reversed(sizes))
