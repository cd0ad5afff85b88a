"""A random program that protects what it has: `tools/recovery_campaign.py` kills its PEs at random times.

mixed.py SEED STEPS [FOLDER [any]] prints the number of steps and a hash of what they have computed. Both
depend on the arguments and the number of PEs alone, and not on losses or on where chares are. With a FOLDER
the program writes its progress to a file there after each weft.protect, and ends after one when FOLDER/stop
exists. With `any` it has no groups, runs on any number of PEs, and computes the same on each.

A step is a few operations that the seed chooses. Each is a coroutine with the name `do_...` below.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import weft
import weft.pgas

SEED, STEPS = int(sys.argv[1]), int(sys.argv[2])
FOLDER = Path(sys.argv[3]) if len(sys.argv) > 3 else None
SUITS_ANY_NUMBER_OF_PES = sys.argv[4:] == ["any"]
MODULUS = 2**61 - 1


def numbers_of(*key: int) -> random.Random:
    """Random numbers that depend on the program and the key alone."""
    return random.Random(f"{SEED} {key}")


PROGRAM = numbers_of()
NUM_CELLS = PROGRAM.randint(3, 14)
CELL_SHAPE = PROGRAM.choice([(NUM_CELLS,), (NUM_CELLS, 2), (2, NUM_CELLS)])
NUM_VALUES = PROGRAM.choice([10, 1_000, 20_000])
NUM_BLOCKS = PROGRAM.randint(2, 12)
HAS_DEVICE_ARRAYS = PROGRAM.random() < 0.3
CELL_MAP = PROGRAM.choice(["block", "round_robin"])
WORDS = 64


class Cell(weft.Chare):
    """An element of an array that moves, with channels to its neighbours."""

    def __init__(self) -> None:
        place = self.index if isinstance(self.index, int) else 100 * self.index[0] + self.index[1]
        self.place = place
        self.values = np.arange(NUM_VALUES, dtype=np.float64) * (place + 1)
        self.taken = place
        self.turn = 0
        self.channels: dict[object, weft.Channel] = {}
        self.device: weft.DeviceArray | None = None

    async def advance(self, step: int) -> float:
        """Values that depend on the whole history."""
        self.values = np.sin(self.values) + 1e-3 * step + 1e-6 * (self.taken % 1000)
        if HAS_DEVICE_ARRAYS:
            if self.device is None:
                self.device = weft.DeviceArray(100, np.float64, "emulated")
                await self.device.copy_from(np.zeros(100))
            await self.device.copy_from(
                await self.device.to_host() + self.values[: min(100, NUM_VALUES)].sum()
            )
        return float(self.values[step % NUM_VALUES])

    def scatter(self, step: int) -> None:
        """Messages to some others, which nothing awaits."""
        numbers = numbers_of(step, self.place)
        for _ in range(numbers.randint(0, 4)):
            to = tuple(numbers.randrange(extent) for extent in self.proxy.shape)
            value = numbers.randrange(MODULUS)
            payload = np.full(numbers.choice([1, 300, 10_000]), value % 1000, dtype=np.int32)
            self.proxy[to if len(to) > 1 else to[0]].take(value, payload)

    def take(self, value: int, payload: np.ndarray) -> None:
        """In any order."""
        self.taken = (self.taken + value + int(payload.sum())) % MODULUS

    async def exchange(self, step: int, size: int) -> float:
        """Sends to the next element over a channel, and receives from the previous one."""
        after, before = self._channel(1), self._channel(-1)
        mine = np.full(size, float(self.place + step))
        theirs = np.empty(size)
        sent = after.send(mine)
        await before.recv(into=theirs)
        await sent
        after.send_object({"step": step, "from": self.place})
        told = await before.recv_object()
        self.values[: min(size, NUM_VALUES)] += theirs[: min(size, NUM_VALUES)] * 1e-6
        return float(theirs[-1]) + told["from"] + told["step"]

    def _channel(self, distance: int) -> weft.Channel:
        index = self.index if isinstance(self.index, int) else self.index[0]
        other = (index + distance) % self.proxy.shape[0]
        peer = other if isinstance(self.index, int) else (other, self.index[1])
        if peer not in self.channels:
            self.channels[peer] = weft.Channel(self, self.proxy[peer], id=0)
        return self.channels[peer]

    def move(self, step: int) -> None:
        numbers = numbers_of(step, self.place, 1)
        if numbers.random() < 0.7:
            self.migrate(numbers.randrange(weft.num_pes()))

    @weft.when(lambda self, turn: turn == self.turn)
    def in_turn(self, turn: int, value: int) -> int:
        """Calls come in any order, and run in that of the turns."""
        self.turn = turn + 1
        self.taken = (self.taken * 3 + value) % MODULUS
        return self.taken

    async def agree(self) -> list[int]:
        return (await self.allreduce(np.array([self.taken, self.turn]), weft.Reducer.max)).tolist()

    def report(self, section: Any, done: weft.Future[Any]) -> None:
        self.contribute(self.taken % 10**6, weft.Reducer.sum, done, section=section)

    def describe(self) -> tuple[str, int]:
        return hashlib.blake2b(self.values.tobytes(), digest_size=8).hexdigest(), self.taken


class Counter(weft.Chare):
    """An element of a group, or of an array in its place."""

    def __init__(self) -> None:
        self.count = self.index

    def add(self, value: int) -> int:
        self.count += value
        return self.count

    def total(self, done: weft.Future[Any]) -> None:
        self.contribute(np.array([self.count, 1]), weft.Reducer.sum, done)


class Block(weft.Chare):
    """An element that load balancing moves."""

    def __init__(self) -> None:
        self.work = 0
        self.left = 0
        self.done: Any = None

    def start(self, rounds: int, done: weft.Future[Any]) -> None:
        self.left, self.done = rounds, done
        self.iterate()

    def iterate(self) -> None:
        end = time.perf_counter() + 2e-5 * (1 + self.index)
        while time.perf_counter() < end:
            pass
        self.work = (self.work * 5 + self.index + self.left) % MODULUS
        self.left -= 1
        self.at_sync()

    def resume_from_sync(self) -> None:
        if self.left > 0:
            self.iterate()
        else:
            done, self.done = self.done, None
            self.contribute(self.work % 10**6, weft.Reducer.sum, done)


class Walker(weft.Chare):
    """An element of a sparse array, which comes and goes."""

    def __init__(self, value: int) -> None:
        self.value = value

    def walk(self, step: int) -> int:
        self.value = (self.value * 7 + step) % MODULUS
        return self.value

    def leave_if(self, remainder: int) -> None:
        if self.index % 3 == remainder:
            self.remove_self()

    def where(self) -> int:
        return self.index

    def move(self, step: int) -> None:
        self.migrate(numbers_of(step, self.index, 2).randrange(weft.num_pes()))


class Memory(weft.Chare):
    """A segment of global memory of each PE, or of each element of an array. It is made anew when the job has
    begun again.
    """

    def __init__(self) -> None:
        self.segment = weft.pgas.make_segment(WORDS + 4096, "int64")

    def pointer(self) -> weft.pgas.GlobalPointer:
        return self.segment.pointer(0)

    async def add(self, pointers: list[weft.pgas.GlobalPointer], step: int) -> None:
        numbers = numbers_of(step, self.index, 3)
        for _ in range(30):
            await weft.pgas.fetch_add(numbers.choice(pointers) + numbers.randrange(WORDS), self.index + 1)
        to = pointers[(self.index + 1) % len(pointers)]
        await weft.pgas.put(np.full(4096, self.index + step), to + WORDS)

    def take(self) -> list[int]:
        words = self.segment.local
        found = [*words[:WORDS].tolist(), int(words[WORDS:].sum())]
        words[:] = 0
        return found


@dataclass
class Parts:
    """All that is protected."""

    cells: Any
    counters: Any
    blocks: Any
    walkers: Any
    step: int = 0
    next_walker: int = 0
    turns: int = 0
    hash: str = ""


def group_of(chare: type[weft.Chare]) -> Any:
    return weft.Array(chare, 3) if SUITS_ANY_NUMBER_OF_PES else weft.Group(chare)


async def make_parts() -> Parts:
    cells = weft.Array(Cell, CELL_SHAPE, map=CELL_MAP)
    walkers = weft.Array(Walker, 1_000_000, sparse=True)
    await walkers.done_inserting()
    return Parts(cells, group_of(Counter), weft.Array(Block, NUM_BLOCKS), walkers)


async def do_advance(parts: Parts, memory: Any, numbers: random.Random) -> object:
    return await parts.cells.advance.call(parts.step)


async def do_scatter(parts: Parts, memory: Any, numbers: random.Random) -> object:
    parts.cells.scatter(parts.step)
    await weft.quiescence()
    return await parts.cells.agree.call()


async def do_exchange(parts: Parts, memory: Any, numbers: random.Random) -> object:
    return await parts.cells.exchange.call(parts.step, numbers.choice([1, 1000, 30_000]))


async def do_move(parts: Parts, memory: Any, numbers: random.Random) -> object:
    parts.cells.move(parts.step)
    if numbers.random() < 0.5:
        await weft.quiescence()
    return await parts.cells.describe.call()


async def do_turns(parts: Parts, memory: Any, numbers: random.Random) -> object:
    cell = parts.cells[0 if len(CELL_SHAPE) == 1 else (0, 0)]
    order = list(range(parts.turns, parts.turns + 5))
    parts.turns += len(order)
    numbers.shuffle(order)
    return sorted(await weft.gather(*[cell.in_turn.call(turn, turn * 11) for turn in order]))


async def do_section(parts: Parts, memory: Any, numbers: random.Random) -> object:
    cells = parts.cells
    section = cells[::2] if len(CELL_SHAPE) == 1 else cells[:, 1]
    done: weft.Future[Any] = weft.Future()
    section.report(section, done)
    return await done, await section.describe.call()


async def do_count(parts: Parts, memory: Any, numbers: random.Random) -> object:
    done: weft.Future[Any] = weft.Future()
    counts = await parts.counters.add.call(numbers.randint(1, 9))
    parts.counters.total(done)
    return counts, (await done).tolist()


async def do_balance(parts: Parts, memory: Any, numbers: random.Random) -> object:
    done: weft.Future[Any] = weft.Future()
    parts.blocks.start(numbers.randint(1, 3), done)
    return await done


async def do_walk(parts: Parts, memory: Any, numbers: random.Random) -> object:
    walkers = parts.walkers
    for _ in range(numbers.randint(1, 4)):
        walkers.insert(parts.next_walker, parts.next_walker * 13)
        parts.next_walker += 1
    await walkers.done_inserting()
    if numbers.random() < 0.4:
        await walkers.leave_if.call(numbers.randrange(3))
        await walkers.done_inserting()
    if numbers.random() < 0.4:
        walkers.move(parts.step)
    return await walkers.where.call(), await walkers.walk.call(parts.step)


async def do_memory(parts: Parts, memory: Any, numbers: random.Random) -> object:
    pointers = await memory.pointer.call()
    await memory.add.call(pointers, parts.step)
    return await memory.take.call()


OPERATIONS = [function for name, function in sorted(globals().items()) if name.startswith("do_")]
# Each program uses most of them, and each with a weight of its own.
WEIGHTS = [PROGRAM.choice([0, 1, 1, 2, 4]) for _ in OPERATIONS]
PROTECT = PROGRAM.choice([0.3, 0.6, 1.0])


async def step_once(parts: Parts, memory: Any) -> None:
    numbers = numbers_of(parts.step)
    operations = numbers.choices(OPERATIONS, WEIGHTS if any(WEIGHTS) else None, k=numbers.randint(1, 4))
    results = [await operation(parts, memory, numbers) for operation in operations]
    parts.hash = hashlib.blake2b(f"{parts.hash} {results!r}".encode(), digest_size=16).hexdigest()
    parts.step += 1


def note_progress(step: int) -> None:
    """One write, so that a reader sees all of it or nothing."""
    assert FOLDER is not None
    file = os.open(FOLDER / "progress", os.O_WRONLY | os.O_CREAT)
    os.pwrite(file, f"{step:08} {weft.recoveries():08}\n".encode(), 0)
    os.close(file)


async def main() -> None:
    saved = await weft.recovered()
    parts = await make_parts() if saved is None else Parts(**saved)
    memory = group_of(Memory)
    while parts.step < STEPS:
        await step_once(parts, memory)
        if numbers_of(parts.step, 4).random() < PROTECT:
            await weft.protect({field.name: getattr(parts, field.name) for field in fields(parts)})
            if FOLDER is not None:
                note_progress(parts.step)
                if (FOLDER / "stop").exists():
                    break
    print("result", parts.step, parts.hash)


weft.run(main)
