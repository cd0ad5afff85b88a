"""Stand-ins for the streams of other libraries, and for what of them is no stream."""

import ctypes


class CupyObject:
    def __init__(self, ptr, device_id=-1):
        self.ptr, self.device_id = ptr, device_id


class CupyStream(CupyObject):
    """One of an older CuPy."""

    done = False

    def wait_event(self, event):
        raise AssertionError("Weft has no events of CuPy")


class TorchStream:
    def __init__(self, handle, index):
        self.cuda_stream = handle
        self.device = type("device", (), {"index": index})


class NumbaStream:
    """One of an older Numba."""

    def __init__(self, handle):
        self.handle = ctypes.c_void_p(handle)

    def __int__(self):
        return self.handle.value or 0


class NumbaEvent:
    def __init__(self, handle):
        self.handle = ctypes.c_void_p(handle)


class CupyEvent(CupyObject):
    done = True


class CupyPointer(CupyObject):
    mem = None


class CupyMemory(CupyObject):
    size = 24


class BrokenStream:
    @property
    def __cuda_stream__(self):
        raise RuntimeError("the driver is gone")


class AnyStream:
    def __init__(self, pair):
        self.pair = pair

    def __cuda_stream__(self):
        return self.pair
