"""Stands in for CuPy in mpi4py's tests: arrays in the memory of emulated devices.

It has what those tests use. Elements are read and written through MPI.Pack and MPI.Unpack, which copy them.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy
from mpi4py import MPI

__version__ = "14.0.0"


class _Memory:
    """Memory of an emulated device, which arrays share."""

    def __init__(self, size_bytes: int) -> None:
        info = MPI.Info.Create({"weft_memory_kind": "emulated"})
        self.buffer = MPI.Alloc_mem(size_bytes, info)
        info.Free()

    def __del__(self) -> None:
        if not MPI.Is_finalized():
            MPI.Free_mem(self.buffer)


class ndarray:  # noqa: N801  it has CuPy's name
    """A dense array."""

    def __init__(self, shape: Any, dtype: Any, memory: _Memory | None = None) -> None:
        self.host_shape = numpy.zeros(shape, dtype=numpy.uint8).shape
        self.dtype = numpy.dtype(dtype)
        self.size = int(numpy.prod(self.host_shape))
        self.itemsize = self.dtype.itemsize
        self.device = SimpleNamespace(id=0)
        self.owner = memory or _Memory(self.size * self.itemsize)
        self.memory = self.owner.buffer

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "data": (self.memory.address if self.size > 0 else 0, False),
            "typestr": self.dtype.str,
            "shape": self.host_shape,
            "strides": None,
            "stream": None,
        }

    # --- What mpi4py's dlpackimpl makes tensors of
    @property
    def typecode(self) -> str:
        return self.dtype.char

    def buffer_info(self) -> tuple[int, int]:
        return self.memory.address, self.size

    def toDlpack(self) -> Any:  # noqa: N802  it has CuPy's name
        import dlpackimpl  # a module of mpi4py's tests

        managed = dlpackimpl.make_dl_managed_tensor(self)
        managed.dl_tensor.device.device_type = dlpackimpl.DLDeviceType.kDLCUDA
        return dlpackimpl.make_py_capsule(managed, owned=True)

    def _get(self) -> numpy.ndarray:
        host = numpy.empty(self.host_shape, self.dtype)
        if self.size > 0:
            MPI.BYTE.Pack(self.memory, host, 0, MPI.COMM_SELF)
        return host

    def _set(self, host: numpy.ndarray) -> None:
        if self.size > 0:
            MPI.BYTE.Unpack(
                numpy.ascontiguousarray(host),
                0,
                self.memory,
                MPI.COMM_SELF,
            )

    def fill(self, value: Any) -> None:
        self._set(numpy.full(self.host_shape, asarray(value, self.dtype)))

    def ravel(self) -> ndarray:
        return ndarray(self.size, self.dtype, self.owner)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._get())

    def __len__(self) -> int:
        return len(self._get())

    def __getitem__(self, index: Any) -> Any:
        return self._get()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        host = self._get()
        host[index] = asarray(value, self.dtype)
        self._set(host)


def zeros(shape: Any, dtype: Any) -> ndarray:
    made = ndarray(shape, dtype)
    made.fill(0)
    return made


def array(value: Any, dtype: Any) -> ndarray:
    if numpy.dtype(dtype).char in "gG":
        raise ValueError("devices have no long double")
    host = numpy.asarray(value, dtype)
    made = ndarray(host.shape, dtype)
    made._set(host)
    return made


def asarray(value: Any, dtype: Any) -> numpy.ndarray:
    return numpy.asarray(value).astype(dtype)


class cuda:  # noqa: N801  it has CuPy's name
    runtime = SimpleNamespace(is_hip=False)

    @staticmethod
    def get_current_stream() -> Any:
        return SimpleNamespace(synchronize=lambda: None)
