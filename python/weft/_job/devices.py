"""The PE's own device: its name, and making it the one on which other libraries allocate."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import ModuleType

from weft import _core

#: Libraries that allocate on the thread's current CUDA device. JAX is none of them: it chooses for itself.
_LIBRARIES = frozenset({"cuda.bindings", "cupy", "numba.cuda", "rmm", "torch"})


@dataclass(frozen=True)
class Device:
    """A device of this process. ``str(device)`` is its name as Weft and PyTorch write it: ``"cuda:1"``."""

    #: The kind of its memory: "cuda" or "emulated".
    kind: str
    #: The number of the device in this process, from 0.
    index: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"


def device(kind: str = "cuda") -> Device:
    """This PE's own device, for libraries that have to be told which one to use.

    PE n of a host has device n modulo their number, or the n-th of ``weft run --gpus``.

        jax.config.update("jax_default_device", jax.devices("gpu")[weft.device().index])
        numba.cuda.select_device(weft.device().index)
        torch.device(str(weft.device()))

    Args:
        kind: "cuda", or "emulated" for the device that every machine has.

    Raises:
        weft.Error: no job is running, or this process has no device of that kind; the message says why.
    """
    return Device(*_core._own_device(kind))


class _Watcher:
    """Has the PE's own device made current just before the first of the libraries is loaded.

    A context takes 0.12 s and half a GiB of the GPU's memory, which a program without these libraries is
    spared.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in _LIBRARIES:
            stop_watching()
            _core._make_own_devices_current()
        return None


def watch() -> None:
    """At the start of a job, on a PE that has a GPU."""
    if any(name in sys.modules for name in _LIBRARIES):
        _core._make_own_devices_current()
    else:
        sys.meta_path.insert(0, _Watcher())


def stop_watching() -> None:
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Watcher)]
