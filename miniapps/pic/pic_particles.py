"""The particles and the grid points of one block, in host memory. Nothing here needs Weft."""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from pic_problem import NUM_FIELDS, Block, Problem, UserError, partners

Values = npt.NDArray[np.float64]


def kernels_named(name: str) -> Any:
    """The module with the kernels: numba, numpy, or auto, which is numba if it is installed.

    Raises:
        UserError: numba is asked for and is not installed.
    """
    if name != "numpy":
        try:
            return importlib.import_module("pic_numba")
        except ImportError:
            if name == "numba":
                raise UserError(
                    "--kernel numba needs Numba: pip install numba, or use --kernel numpy"
                ) from None
    return importlib.import_module("pic_numpy")


class Particles:
    """A block. move(), and then put_in() for what each partner has sent, are one step.

    The arrays grow if need be and are reused. A block that is pickled takes some unused memory along.
    """

    def __init__(self, problem: Problem, number: int, kernel: str) -> None:
        self.problem, self.number, self.kernel = problem, number, kernel
        self.partners = partners(problem, number)
        block = Block.of(problem, number)
        self.values = problem.particles_of(block)
        self.count = self.values.shape[1]
        self._reserve(self.count + 1)
        self.grid = block.grid()
        self.compute_s = 0.0
        self._prepare()

    def move(self) -> list[tuple[int, Values | None]]:
        """Moves all particles. Returns each partner with its particles: None, or an array that is reused.

        Raises:
            RuntimeError: a particle has got further than to a partner.
        """
        begin = time.perf_counter()
        leaving, counts = self._leaving, self._counts
        number = self._move(
            self.values, self.count, self.grid, self._geometry, self._slot_of_block, leaving, counts
        )
        if number < 0:
            self._refuse(-1 - number)
        if NUM_FIELDS * number > len(self._outgoing):
            self._outgoing = np.empty(2 * NUM_FIELDS * number)
        ends = np.cumsum(counts) * NUM_FIELDS
        begins = ends - counts * NUM_FIELDS
        if number > 0:
            self.count = self._take_out(
                self.values, self.count, leaving, number, counts, begins.copy(), self._outgoing
            )
        messages = [
            (partner, self._outgoing[first:end] if end > first else None)
            for partner, first, end in zip(self.partners, begins.tolist(), ends.tolist(), strict=True)
        ]
        self.compute_s += time.perf_counter() - begin
        return messages

    def put_in(self, incoming: Values | None) -> None:
        """Adds the particles of a message.

        Raises:
            RuntimeError: the message holds no particles of this block.
        """
        if incoming is None:
            return
        begin = time.perf_counter()
        if incoming.dtype != np.float64 or incoming.ndim != 1 or len(incoming) % NUM_FIELDS != 0:
            raise RuntimeError(
                f"block {self.number}: {incoming.size} numbers have arrived, which are no particles"
            )
        self._reserve(self.count + len(incoming) // NUM_FIELDS)
        count = self._put_in(self.values, self.count, incoming, self._geometry)
        if count < 0:
            raise RuntimeError(f"block {self.number}: a particle has arrived that is not in this block")
        self.count = count
        self.compute_s += time.perf_counter() - begin

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if not name.startswith("_")}
        # The unused part travels too: memory that is used for the first time takes longer than its transfer.
        if self.values.shape[1] > 2 * self._room(self.count):
            state["values"] = self.values[:, : self._room(self.count)].copy()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    def _prepare(self) -> None:
        """All that follows from the rest. Names that begin with _ do not travel."""
        problem, block = self.problem, Block.of(self.problem, self.number)
        kernels = kernels_named(self.kernel)
        self._move, self._take_out, self._put_in = kernels.move, kernels.take_out, kernels.put_in
        self._geometry = np.array(
            [
                problem.size,
                *[block.first_column, block.end_column, block.first_row, block.end_row],
                *[problem.blocks_x, problem.blocks_y],
            ],
            np.int64,
        )
        self._slot_of_block = np.full(problem.num_blocks, -1, np.int32)
        self._slot_of_block[self.partners] = np.arange(len(self.partners), dtype=np.int32)
        self._counts = np.zeros(len(self.partners), np.int64)
        self._leaving = np.empty((2, self.values.shape[1]), np.int32)
        self._outgoing = np.empty(0)

    def _reserve(self, count: int) -> None:
        if count <= self.values.shape[1]:
            return
        larger = np.empty((NUM_FIELDS, self._room(count)))
        larger[:, : self.count] = self.values[:, : self.count]
        self.values = larger
        self._leaving = np.empty((2, larger.shape[1]), np.int32)

    @staticmethod
    def _room(count: int) -> int:
        return count + count // 2 + 64

    def _refuse(self, place: int) -> None:
        x, y, vx, vy, charge, number = self.values[:, place].tolist()
        raise RuntimeError(
            f"block {self.number}: particle {number:.0f} with velocity ({vx}, {vy}) and charge {charge} has "
            f"got to ({x}, {y}), further than a step reaches"
        )
