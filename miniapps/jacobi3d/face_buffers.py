"""The buffers that a block's faces pass through; face_buffers.h is the same in C++.

Every buffer is there twice, in slots used by iterations in turn: the kernels that read or write a slot in one
iteration are done by the time that the slot is used again, without anybody waiting for them. A neighbour
sends what a slot receives in iteration i + 2 after its update i + 1, which needs this block's face of
iteration i + 1, which left after all that was queued in iteration i.
"""

from __future__ import annotations

from collections.abc import Iterable

from field import Field
from kernels import Array, Kernels
from stencil import Values, face_shape

NUM_SLOTS = 2
Faces = dict[int, Array]


class FaceBuffers:
    """For `faces` of `field`; with `host_staging`, copies in host memory are sent instead."""

    def __init__(self, field: Field, kernels: Kernels, faces: Iterable[int], host_staging: bool) -> None:
        self._field = field
        self._kernels = kernels
        shapes = {face: face_shape(field.size, face) for face in faces}

        def make(make_array) -> list[Faces]:
            return [{face: make_array(shape) for face, shape in shapes.items()} for _ in range(NUM_SLOTS)]

        self._packed, self._arrived = make(kernels.make_array), make(kernels.make_array)
        self._host_packed: list[dict[int, Values]] | None = None
        if host_staging:
            self._host_packed = make(kernels.make_host_array)
            self._host_arrived = make(kernels.make_host_array)
            self._outgoing, self._incoming = self._host_packed, self._host_arrived
        elif kernels.stream is None:
            self._outgoing, self._incoming = self._packed, self._arrived
        else:  # a send waits for the kernel that packs
            self._outgoing = [
                {face: array.on(kernels.stream) for face, array in slot.items()} for slot in self._packed
            ]
            self._incoming = self._arrived

    async def pack(self, slot: int) -> None:
        """Packs all faces. When it is done, the buffers of outgoing() may be sent.

        The slot's last sends must be over.
        """
        self.queue_pack(slot)
        if self._packed[slot] and self._host_packed is not None:
            for face, host in self._host_packed[slot].items():
                self._kernels.to_host(self._packed[slot][face], host)
            await self._field.done()  # host memory has no stream that a send could wait for

    def queue_pack(self, slot: int) -> None:
        """Queues the packing alone, for what waits for the field's stream."""
        if self._packed[slot]:
            self._field.pack(self._packed[slot])

    def outgoing(self, slot: int) -> Faces:
        """The buffer to send, by face."""
        return self._outgoing[slot]

    def incoming(self, slot: int) -> Faces:
        """Where the neighbour's face is received, by face. It must have arrived before unpack()."""
        return self._incoming[slot]

    def unpack(self, slot: int) -> None:
        """Sets the ghost points."""
        if not self._arrived[slot]:
            return
        if self._host_packed is not None:
            for face, host in self._host_arrived[slot].items():
                self._kernels.to_device(host, self._arrived[slot][face])
        self._field.unpack(self._arrived[slot])
