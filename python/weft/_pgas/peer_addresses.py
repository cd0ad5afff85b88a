"""Addresses in the memory of several PEs, in an array that kernels take as an argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import _core


class PeerAddresses:
    """The addresses by which kernels on one device reach memory of several PEs; see `peer_addresses`.

    While the object lives, the segments stay, also if their owners free them: keep it until the kernels that
    use the addresses are done. It has ``__cuda_array_interface__``: ``cupy.asarray(addresses)`` and
    ``torch.as_tensor(addresses, device="cuda")`` give an array over `array`, and keep this object.
    """

    __slots__ = ("_kept", "addresses", "array")

    #: The addresses as ints; 0 for None.
    addresses: tuple[int, ...]
    #: The same in memory of the device: a weft.DeviceArray of int64, which a kernel reads as pointers.
    array: _core.DeviceArray

    def __init__(self, addresses: tuple[int, ...], array: _core.DeviceArray, kept: list[Any]) -> None:
        self.addresses = addresses
        self.array = array
        self._kept = kept

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.array.__cuda_array_interface__

    def __len__(self) -> int:
        return len(self.addresses)

    def __repr__(self) -> str:
        return f"<weft.pgas.PeerAddresses: {len(self)} for kernels of {self.array.kind}>"


async def peer_addresses(
    pointers: Sequence[_core.GlobalPointer | None], kind: str | None = None
) -> PeerAddresses:
    """The addresses by which kernels of this PE's device reach memory of other PEs, and of this one.

    Not collective. It learns the segments, as GlobalPointer.learn() does.

        flags = await weft.pgas.peer_addresses(await world.allgather(flag.pointer()), "cuda")

    Args:
        pointers: one for each place, for example one of each rank. None gives the address 0, for a PE without
            a neighbour.
        kind: the device whose kernels use them, as make_segment() takes it; by default the kind of the first
            pointer into device memory, and this PE's own device of it.

    Returns:
        the addresses, in an array of int64 in memory of the device. They lead to the elements that the
        pointers name and to what is behind them in the segments. Weft does not check what kernels do there.

    Raises:
        weft.Error: a segment that the device does not reach, for example one of another host; one that is
            freed. GPUs reach host memory that Weft has allocated, and emulated devices do not.
    """
    if kind is None:
        kinds = [pointer.kind for pointer in pointers if pointer is not None and pointer.kind != "host"]
        if not kinds:
            raise _core.Error(
                "weft.pgas.peer_addresses got no pointer into device memory: give `kind`, the kernels' device"
            )
        kind = kinds[0]
    array = _core.DeviceArray(len(pointers), "int64", kind)
    kept = []
    for pointer in pointers:
        if pointer is not None:
            await pointer.learn()
        kept.append(None if pointer is None else pointer._for_kernels(array.kind))
    addresses = tuple(0 if memory is None else memory.ptr for memory in kept)
    await array.copy_from(np.array(addresses, "int64"))
    return PeerAddresses(addresses, array, kept)
