"""weft.register: an array that is sent, or received into, again and again."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, TypeVar

from weft import _core

if TYPE_CHECKING:
    import numpy as np

_A = TypeVar("_A", bound="np.ndarray")


def register(array: _A) -> _A:
    """Registers an array with the network for as long as it lives.

        halo = weft.register(np.empty(n))
        channel.send(halo)                              # as ever, from the registered memory
        proxy[i].store.send(weft.nocopy(halo[:k]))      # views too

    What lies inside of it is then sent, and received into, through that registration, on channels and as
    arguments of calls, in place of one at each message or a look into the network's own cache. Between PEs
    of one host, which register nothing, it changes nothing. Blocks while the network registers (pins) the
    memory.

    Args:
        array: in host memory, of any shape and dtype, C-contiguous. It owns its memory: not a view.

    Returns:
        The same array.

    Raises:
        weft.Error: outside of a job; for another object, a view, or memory that the network refuses.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(array, numpy.ndarray):
        raise _core.Error(
            f"weft.register takes a NumPy array in host memory, not a {type(array).__name__}; device memory "
            "is registered with the network when it is first sent"
        )
    # Whatever is in flight keeps the owner of the memory, but not each view of it.
    if array.base is not None or not array.flags.owndata:
        raise _core.Error(
            "weft.register takes an array that owns its memory, and this one is a view: register the array "
            "that it is a view of, or a copy"
        )
    weakref.finalize(array, _end, _core._register_memory(array))
    return array


def _end(registration: object) -> None:
    """The registration ends with its last reference."""
