"""A block's points and the halos that it exchanges. Nothing is allocated in an iteration.

The points are there twice: iteration i reads slot i % 2 and writes the other one. Outer rows are sent out of
the points, and rows arrive in the ghost points. Columns do not lie together in memory, so they pass through
buffers, one for each slot.

What is sent in iteration i is overwritten in iteration i + 1: the sends must be over by then. What arrives
for iteration i + 1 may arrive from the beginning of iteration i on, and nothing waits for the kernels that
read the same memory in iteration i - 1. The neighbour sends it after its update i, which needs this block's
halo of iteration i, which left after update i - 1.
"""

from __future__ import annotations

from collections.abc import Collection

from grid import Range
from kernels import Array, Kernels

NUM_SLOTS = 2


class Field:
    """The points of `range_`, which exchanges halos at `sides`.

    They have their initial values, or the values of `points`, an array with ghost points, if that is given:
    then they are in slot `slot`.
    """

    def __init__(
        self,
        kernels: Kernels,
        range_: Range,
        sides: Collection[int],
        points: Array | None = None,
        slot: int = 0,
    ) -> None:
        self._kernels = kernels
        rows, columns = range_.size
        self.points = []
        for number in range(NUM_SLOTS):
            if points is not None and number == slot:
                self.points.append(points)
            else:
                self.points.append(kernels.make_array((rows + 2, columns + 2)))
                kernels.fill(self.points[-1], range_)  # its boundary is never written again
        vertical = [side for side in sides if side >= 2]
        packed, arrived = (
            [{side: kernels.make_array((rows,)) for side in vertical} for _ in range(NUM_SLOTS)]
            for _ in range(2)
        )
        self._packers, self._unpackers = (
            [
                kernels.columns_copier(self.points[s], columns_of[s], packing=packing)
                for s in range(NUM_SLOTS if vertical else 0)
            ]
            for columns_of, packing in ((packed, True), (arrived, False))
        )
        #: By slot and side: what is sent, and where the neighbour's halo arrives.
        self.outgoing = [
            {side: self._outgoing(s, side, packed[s]) for side in sides} for s in range(NUM_SLOTS)
        ]
        self.incoming = [
            {side: self._incoming(s, side, arrived[s]) for side in sides} for s in range(NUM_SLOTS)
        ]

    def pack(self, slot: int) -> None:
        """Fills what outgoing[slot] names. The slot's last sends must be over."""
        if self._packers:
            self._packers[slot]()

    def unpack(self, slot: int) -> None:
        """Sets the ghost points of `slot`. What incoming[slot] names must have arrived."""
        if self._unpackers:
            self._unpackers[slot]()

    def update(self, slot: int) -> None:
        """One Jacobi iteration, from `slot` to the other one."""
        self._kernels.update(self.points[slot], self.points[1 - slot])

    def _outgoing(self, slot: int, side: int, columns: dict[int, Array]) -> Array:
        points = self.points[slot]
        last = points.shape[0] - 1
        return columns[side] if side >= 2 else points[1:2] if side == 0 else points[last - 1 : last]

    def _incoming(self, slot: int, side: int, columns: dict[int, Array]) -> Array:
        points = self.points[slot]
        last = points.shape[0] - 1
        return columns[side] if side >= 2 else points[0:1] if side == 0 else points[last : last + 1]
