"""The state of a chare that moves to another PE, as the extension packs and unpacks it.

The state is what pickling the object would take: ``__getstate__()``, else its attributes. It is pickled with
protocol 5. A channel is pickled as the name of its end, which travels by itself. The memory of NumPy arrays
stays out of the pickle, and device arrays travel beside it, from device to device.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import sys
from collections.abc import Callable
from typing import Any

from weft import _core


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, buffers: list[pickle.PickleBuffer]) -> None:
        super().__init__(file, protocol=5, buffer_callback=buffers.append)
        self.device_arrays: list[object] = []

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is _core.Channel:
            return _core._moved_channel, (obj._key(),)
        kind = _kind_of(obj)
        if kind is None:
            return NotImplemented
        self.device_arrays.append(obj)
        return _take, (len(self.device_arrays) - 1, kind)


def _kind_of(obj: Any) -> str | None:
    """How a device array is made again on its new PE; None for objects that pickle as they are.

    Subclasses, as torch.nn.Parameter, and tensors that record gradients have more state than their memory, so
    their libraries pickle them.
    """
    kind = type(obj)
    if kind is _core.DeviceArray:
        return "weft"
    if kind is _type_of("cupy", "ndarray"):
        return "cupy"
    if kind is _type_of("torch", "Tensor") and obj.is_cuda and not obj.requires_grad:
        return "torch"
    return None


def _type_of(module: str, name: str) -> object:
    """The type, if the program has imported the module. A type that is not known equals no object's."""
    return getattr(sys.modules.get(module), name, _kind_of)


def _as_cupy(array: Any) -> Any:
    return sys.modules["cupy"].asarray(array)


def _as_torch(array: Any) -> Any:
    return sys.modules["torch"].from_dlpack(array)


_MAKERS: dict[str, Callable[[Any], Any]] = {"weft": lambda array: array, "cupy": _as_cupy, "torch": _as_torch}

# The device arrays of the state that is being unpacked.
_arrived: list[Any] = []


def _take(which: int, kind: str) -> Any:
    if kind in ("cupy", "torch"):
        __import__(kind)
    return _MAKERS[kind](_arrived[which])


def pack_state(chare: _core.Chare) -> tuple[bytes, list[pickle.PickleBuffer], list[object]]:
    """The pickled state, the memory that it leaves out, and its device arrays."""
    file = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    pickler = _Pickler(file, buffers)
    pickler.dump(_state_of(chare))
    return file.getvalue(), buffers, pickler.device_arrays


def unpack_state(
    chare: _core.Chare, pickled: memoryview, buffers: list[object], device_arrays: list[object]
) -> None:
    """Gives the object, which has no state yet, what pack_state has packed."""
    global _arrived
    outer, _arrived = _arrived, device_arrays
    try:
        state = pickle.loads(pickled, buffers=buffers)
    finally:
        _arrived = outer
    _set_state(chare, state)


def _state_of(chare: Any) -> object:
    getstate = getattr(type(chare), "__getstate__", None)
    if getstate is not None:  # of the class, or object's, which Python has since 3.11
        return getstate(chare)
    # What object.__getstate__ does since Python 3.11, with the names of the slots as pickle finds them.
    names = copyreg._slotnames(type(chare))  # type: ignore[attr-defined]
    slots = {name: getattr(chare, name) for name in names if hasattr(chare, name)}
    attributes = getattr(chare, "__dict__", None)
    return (attributes, slots) if slots else attributes


def _set_state(chare: Any, state: Any) -> None:
    if state is None:
        return
    setstate = getattr(type(chare), "__setstate__", None)
    if setstate is not None:
        setstate(chare, state)
        return
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        chare.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(chare, name, value)
