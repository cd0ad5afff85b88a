"""Load-balancing strategies as Python functions. Prints "all checked".

strategies.py ANY: with the strategy that WEFT_LB names.
"""

from __future__ import annotations

import sys

import numpy as np

import weft
from weft import load_balancing

COUNT = 12
PINNED = 3


@load_balancing.strategy("heaviest_first")
def heaviest_first(snapshot: load_balancing.Snapshot) -> list[int]:
    """Greedy: the heaviest object that can move goes to the PE with the least time."""
    check_snapshot(snapshot)
    pes = snapshot.pes()
    times = list(snapshot.background_load_s)
    for item in snapshot.objects:
        if not item.can_move:
            times[item.pe] += item.load_s / snapshot.pe_speed[item.pe]
    order = sorted(range(len(pes)), key=lambda i: -snapshot.objects[i].load_s)
    for i in order:
        item = snapshot.objects[i]
        if item.can_move:
            pes[i] = min(range(snapshot.num_pes), key=times.__getitem__)
            times[pes[i]] += item.load_s / snapshot.pe_speed[pes[i]]
    return pes


def check_snapshot(snapshot: load_balancing.Snapshot) -> None:
    assert snapshot.num_pes == weft.num_pes()
    assert len(snapshot.background_load_s) == snapshot.num_pes
    assert snapshot.pe_speed == [1.0] * snapshot.num_pes
    assert len({item.collection for item in snapshot.objects}) == 1
    assert [item.index for item in snapshot.objects] == list(range(COUNT))
    assert [item.load_s for item in snapshot.objects] == [float(i + 1) for i in range(COUNT)]
    assert [item.can_move for item in snapshot.objects] == [i != PINNED for i in range(COUNT)]
    assert snapshot.edges == []


@load_balancing.strategy("as_array")
def as_array(snapshot: load_balancing.Snapshot) -> np.ndarray:
    pes = np.array(snapshot.pes())
    pes[:PINNED] = snapshot.num_pes - 1
    return pes


@load_balancing.strategy("short")
def short(snapshot: load_balancing.Snapshot) -> list[int]:
    return snapshot.pes()[1:]


@load_balancing.strategy("no_such_pe")
def no_such_pe(snapshot: load_balancing.Snapshot) -> list[int]:
    return [*snapshot.pes()[:-1], snapshot.num_pes]


@load_balancing.strategy("huge")
def huge(snapshot: load_balancing.Snapshot) -> list[int]:
    return [*snapshot.pes()[:-1], 2**70]


@load_balancing.strategy("moves_pinned")
def moves_pinned(snapshot: load_balancing.Snapshot) -> list[int]:
    pes = snapshot.pes()
    pes[PINNED] = (pes[PINNED] + 1) % snapshot.num_pes
    return pes


@load_balancing.strategy("raises")
def raises(snapshot: load_balancing.Snapshot) -> list[int]:
    raise LookupError("the tables are missing")


@load_balancing.strategy("exits")
def exits(snapshot: load_balancing.Snapshot) -> list[int]:
    sys.exit(3)


@load_balancing.strategy("no_list")
def no_list(snapshot: load_balancing.Snapshot) -> None:
    return None


@load_balancing.strategy("of_floats")
def of_floats(snapshot: load_balancing.Snapshot) -> list[float]:
    return [float(pe) for pe in snapshot.pes()]


class Block(weft.Chare):
    """Reaches sync points on request, with a load of its own."""

    def step(self, over: weft.Future[int]) -> None:
        self.over = over
        self.pinned = self.index == PINNED
        self.set_load_s(self.index + 1)
        self.at_sync()

    def resume_from_sync(self) -> None:
        self.contribute(1, weft.Reducer.sum, self.over)

    def where(self) -> int:
        return weft.my_pe()


async def main() -> None:
    blocks = weft.Array(Block, COUNT)
    before = await blocks.where.call()
    for _ in range(2):
        over = weft.Future()
        blocks.step(over)
        assert await over == COUNT
    after = await blocks.where.call()
    assert after[PINNED] == before[PINNED]
    times = [sum(i + 1 for i in range(COUNT) if after[i] == pe) for pe in range(weft.num_pes())]
    print(f"times {times}")
    print("all checked")


weft.run(main)
