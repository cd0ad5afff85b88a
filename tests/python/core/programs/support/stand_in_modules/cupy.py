"""Stands in for CuPy: says which device was the thread's current one when it was imported."""

import ctypes


class Context(ctypes.Structure):
    """The stand-in driver's context, see tests/unit/memory/fake_cuda.h."""

    _fields_ = (("device", ctypes.c_int), ("retained", ctypes.c_int))


def current_device() -> int | None:
    context = ctypes.POINTER(Context)()
    assert ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context)) == 0
    return context.contents.device if context else None


DEVICE_AT_IMPORT = current_device()
