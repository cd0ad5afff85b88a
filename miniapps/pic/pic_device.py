"""Blocks whose particles and grid points are in device memory, from which particles travel to device memory.

The kernels are those of pic_cuda.py, or on an emulated device those of the host, which run as a device's
would. A block waits for its device once a step, because the sizes of its messages are known on the device
first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import weft
from pic_blocks import Account, Schedule, Setup
from pic_options import pin
from pic_particles import kernels_named
from pic_problem import NUM_FIELDS, Block, Problem, UserError, partners
from pic_verification import Found, examine


def expect_usable(memory: str) -> None:
    """Raises UserError, one sentence, if a package or a device is missing."""
    try:
        if memory == "cuda":
            import pic_cuda  # noqa: F401
        weft.Stream(memory)
    except ImportError as error:
        raise UserError(f"--memory cuda needs CuPy: pip install cupy-cuda13x ({error})") from None
    except weft.Error as error:
        raise UserError(f"--memory {memory}: {error}") from None


class EmulatedWork:
    """Queues the kernels of one block on an emulated device. CudaWork in pic_cuda.py does the same on a GPU.

    `values` are the particles, field by field with room for `capacity` of them, `grid` the charges of the
    points. `arrays` is the module whose arrays particles_of() and view() return.
    """

    arrays: Any = np

    def __init__(self, geometry: Any, slot_of_block: Any, num_slots: int, kernel: str) -> None:
        self.stream = weft.Stream("emulated")
        self.counts = np.zeros(num_slots, np.int64)
        self._kernels = kernels_named(kernel)
        self._geometry, self._slot_of_block = geometry, slot_of_block
        self._leaving: Any = None
        self._number = np.zeros(1, np.int64)
        self._arrived = np.zeros(1, np.int64)

    def particles_of(self, problem: Problem, block: Block) -> Any:
        """Those at the start, see Problem.particles_of()."""
        return problem.particles_of(block)

    async def view(self, values: Any, capacity: int, count: int) -> Any:
        """The particles, NUM_FIELDS rows, for reading."""
        return (await values.to_host()).reshape(NUM_FIELDS, capacity)[:, :count]

    def move(self, values: Any, capacity: int, count: int, grid: Any) -> None:
        """Moves all particles, and finds those that leave."""
        if self._leaving is None or self._leaving.shape[1] < capacity:
            self._leaving = weft.DeviceArray((2, capacity), np.int32, self.stream.kind)

        def run(particles: Any, charges: Any, leaving: Any) -> None:
            charges = charges.reshape(self._geometry[2] - self._geometry[1] + 1, -1).astype(np.int8)
            self._number[0] = self._kernels.move(
                particles, count, charges, self._geometry, self._slot_of_block, leaving, self.counts
            )

        weft.emulated.launch(
            run, values.reshape((NUM_FIELDS, capacity)), grid, self._leaving, stream=self.stream
        )

    def number_leaving(self) -> int:
        """Negative if a particle is where none can be. REQUIRES: move() is done.

        `counts` are the numbers of each slot then.
        """
        return -1 if self._arrived[0] < 0 else int(self._number[0])

    def take_out(self, values: Any, capacity: int, count: int, outgoing: Any) -> None:
        """Takes the particles out that leave, slot by slot and field by field."""
        counts = self.counts.copy()
        places = NUM_FIELDS * (np.cumsum(counts) - counts)

        def run(particles: Any, leaving: Any, buffer: Any) -> None:
            self._kernels.take_out(particles, count, leaving, int(counts.sum()), counts, places, buffer)

        weft.emulated.launch(
            run, values.reshape((NUM_FIELDS, capacity)), self._leaving, outgoing, stream=self.stream
        )

    def put_in(self, values: Any, capacity: int, count: int, incoming: Any) -> None:
        """Adds particles. The next number_leaving() tells if one is not of this block."""

        def run(particles: Any, arrived: Any) -> None:
            self._arrived[0] |= min(self._kernels.put_in(particles, count, arrived, self._geometry), 0)

        weft.emulated.launch(run, values.reshape((NUM_FIELDS, capacity)), incoming, stream=self.stream)

    def copy(self, values: Any, capacity: int, count: int, larger: Any, larger_capacity: int) -> None:
        """The particles, to an array with more room."""

        def run(source: Any, target: Any) -> None:
            target[:, :count] = source[:, :count]

        weft.emulated.launch(
            run,
            values.reshape((NUM_FIELDS, capacity)),
            larger.reshape((NUM_FIELDS, larger_capacity)),
            stream=self.stream,
        )

    def take_compute_s(self) -> float:
        """The time of the kernels since the last call. 0: it is not measured on an emulated device."""
        return 0.0


def make_work(memory: str, geometry: Any, slot_of_block: Any, num_slots: int, kernel: str) -> Any:
    if memory == "cuda":
        from pic_cuda import CudaWork

        return CudaWork(geometry, slot_of_block, num_slots)
    return EmulatedWork(geometry, slot_of_block, num_slots, kernel)


class DeviceParticles:
    """A block.

    A step is start_move(), when the stream is done finish_move(), and then put_in() for each message.
    """

    def __init__(self, problem: Problem, number: int, memory: str, kernel: str) -> None:
        self.problem, self.number, self.memory, self.kernel = problem, number, memory, kernel
        self.partners = partners(problem, number)
        self.compute_s = 0.0
        self.capacity = self.count = 0
        self.values: Any = None
        self.grid: Any = None
        self._prepare()

    @property
    def stream(self) -> weft.Stream:
        return self._work.stream

    async def fill(self) -> None:
        """The particles at the start."""
        block = Block.of(self.problem, self.number)
        particles = self._work.particles_of(self.problem, block)
        self.count = particles.shape[1]
        self.capacity = self.count + self.count // 4 + 64
        self.values = self._array(NUM_FIELDS * self.capacity)
        for field in range(NUM_FIELDS):
            begin = field * self.capacity
            await self.values[begin : begin + self.count].copy_from(particles[field])
        grid = block.grid().reshape(-1).astype(np.float64)
        self.grid = self._array(grid.size)
        await self.grid.copy_from(grid)

    async def examine(self, steps: int) -> Found:
        """What the block holds, compared with what must be there after that many steps of the program."""
        await weft.stream_done(self.stream)
        particles = await self._work.view(self.values, self.capacity, self.count)
        return examine(self.problem, particles, steps, self._work.arrays)

    def start_move(self) -> None:
        self._work.move(self.values, self.capacity, self.count, self.grid)

    def finish_move(self) -> list[tuple[int, Any]]:
        """Each partner with its particles: None, or an array that the next call reuses.

        Raises:
            RuntimeError: a particle is where none can be.
        """
        self._held.clear()
        self.compute_s += self._work.take_compute_s()
        number = self._work.number_leaving()
        if number < 0:
            raise RuntimeError(
                f"block {self.number}: a particle is further from its place than a step reaches"
            )
        if NUM_FIELDS * number > self._outgoing_size:
            self._outgoing_size = 2 * NUM_FIELDS * number
            self._outgoing = self._array(self._outgoing_size)
        if number > 0:
            self._work.take_out(self.values, self.capacity, self.count, self._outgoing)
            self.count -= number
        messages, begin = [], 0
        for partner, count in zip(self.partners, self._work.counts.tolist(), strict=True):
            end = begin + NUM_FIELDS * count
            messages.append((partner, self._outgoing[begin:end].on(self.stream) if count > 0 else None))
            begin = end
        return messages

    def put_in(self, incoming: Any) -> None:
        """Adds the particles of a message.

        Raises:
            RuntimeError: the message holds no particles.
        """
        if incoming is None:
            return
        if incoming.dtype != np.float64 or incoming.ndim != 1 or incoming.size % NUM_FIELDS != 0:
            raise RuntimeError(
                f"block {self.number}: {incoming.size} numbers have arrived, which are no particles"
            )
        number = incoming.size // NUM_FIELDS
        self._reserve(self.count + number)
        self._work.put_in(self.values, self.capacity, self.count, incoming)
        self._held.append(incoming)
        self.count += number

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    def _prepare(self) -> None:
        """All that follows from the rest. Names that begin with _ do not travel."""
        problem, block = self.problem, Block.of(self.problem, self.number)
        area = [block.first_column, block.end_column, block.first_row, block.end_row]
        geometry = np.array([problem.size, *area, problem.blocks_x, problem.blocks_y], np.int64)
        slot_of_block = np.full(problem.num_blocks, -1, np.int32)
        slot_of_block[self.partners] = np.arange(len(self.partners), dtype=np.int32)
        self._work = make_work(self.memory, geometry, slot_of_block, len(self.partners), self.kernel)
        self._outgoing: Any = None
        self._outgoing_size = 0
        self._held: list[Any] = []  # arrays that queued kernels read

    def _array(self, size: int) -> weft.DeviceArray:
        return weft.DeviceArray(size, np.float64, self.stream.kind)

    def _reserve(self, count: int) -> None:
        if count <= self.capacity:
            return
        capacity = count + count // 4 + 64
        larger = self._array(NUM_FIELDS * capacity)
        self._work.copy(self.values, self.capacity, self.count, larger, capacity)
        self._held.append(self.values)
        self.values, self.capacity = larger, capacity


class DeviceBlock(weft.Chare):
    """See pic_blocks.Block. A step waits, so it is a coroutine; none is suspended at a sync point."""

    def __init__(self, setup: Setup) -> None:
        if setup.pin:
            pin(weft.my_pe())
        self._setup = setup
        self._schedule = Schedule(setup)
        self._particles = DeviceParticles(setup.problem, self.index, setup.memory, setup.kernel)
        # Of this step and of the next, by the parity of the step.
        self._messages: list[list[Any]] = [[], []]
        self._all_arrived: Any = None
        self._done: Any = None

    async def created(self) -> None:
        await self._particles.fill()

    async def run(self, last_step: int, done: Any) -> None:
        self._schedule.last_step, self._done = last_step, done
        await self._go_on()

    def arrive(self, step: int, particles: Any) -> None:
        self._schedule.expect(step, self._schedule.step, self._schedule.step + 1)
        self._messages[step % 2].append(particles)
        if self._all_arrived is not None and step == self._schedule.step and self._has_all():
            self._all_arrived.set()

    def resume_from_sync(self) -> None:
        self._schedule.resumed()
        self.proxy[self.index].resume()

    async def resume(self) -> None:
        await self._go_on()

    def account(self) -> Account:
        return Account(self._particles.compute_s, self._schedule.syncs)

    def restart_account(self) -> None:
        self._particles.compute_s = 0.0
        self._schedule.syncs.clear()

    async def examine(self, steps: int) -> Found:
        return await self._particles.examine(steps)

    async def _go_on(self) -> None:
        schedule, particles = self._schedule, self._particles
        while schedule.step < schedule.last_step:
            if schedule.is_at_sync():
                # The device is done with the particles before they travel.
                await weft.stream_done(particles.stream)
                if self._setup.counts_particles:
                    self.set_load_s(float(particles.count))
                self.at_sync()
                return
            await self._step()
            schedule.step += 1
        done, self._done = self._done, None
        self.contribute(target=done)

    async def _step(self) -> None:
        particles, step = self._particles, self._schedule.step
        with self.device_work(particles.stream):
            particles.start_move()
        await weft.stream_done(particles.stream)
        with self.device_work(particles.stream):
            leaving = particles.finish_move()
        sends = []
        for partner, values in leaving:
            if values is None:
                self.proxy[partner].arrive(step, None)
            else:
                sends.append(self.proxy[partner].arrive.send(step, values))
        if not self._has_all():
            self._all_arrived = weft.Future()
            await self._all_arrived
            self._all_arrived = None
        messages = self._messages[step % 2]
        with self.device_work(particles.stream):
            for message in messages:
                particles.put_in(message)
        messages.clear()
        for send in sends:
            await send

    def _has_all(self) -> bool:
        return len(self._messages[self._schedule.step % 2]) == len(self._particles.partners)
