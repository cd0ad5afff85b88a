"""Programs of teams, on two PEs and more: see cases.py."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import numpy as np
from cases import right, run_all, wrong

import weft
from weft import pgas

LATE_S = 1.0
FUTURE = "a future that nothing has set"


def wrong_team(*texts: str, pes: int = 2) -> Any:
    return wrong(*texts, pes=pes, team=True)


def right_team(pes: int = 2, looks: int = 1) -> Any:
    return right(pes=pes, team=True, looks=looks)


async def never() -> None:
    await weft.Future()  # nothing sets it


async def call_back(rank: int) -> None:
    await pgas.world().rpc(rank, never)


async def late() -> int:
    await weft.sleep(LATE_S)
    return 1


def compute() -> None:
    time.sleep(LATE_S)


@wrong_team("main on PE 1 (teams.py:", FUTURE, "barrier of a team, in which PE 1 has not taken its part")
async def barrier_of_one(team: pgas.Team) -> None:
    await (team.barrier() if team.rank == 0 else never())


@wrong_team("main on PE 1 (teams.py:", FUTURE, "barrier of a team, in which PE 1 has not taken its part")
async def blocking_barrier_of_one(team: pgas.Team) -> None:
    if team.rank == 1:
        await never()
    team.blocking_barrier()


@wrong_team("main on PE 1 (teams.py:", FUTURE, "barrier of a team, in which PE 0 has not taken its part")
async def call_or_barrier(team: pgas.Team) -> None:
    await (team.rpc(1, never) if team.rank == 0 else team.barrier())


@wrong_team(
    "main on PE 2 (teams.py:", FUTURE, "barrier of a team, in which PE 2 has not taken its part", pes=4
)
async def barrier_of_three(team: pgas.Team) -> None:
    await (never() if team.rank == 2 else team.barrier())


@wrong_team("main on PE 0 (teams.py:", FUTURE, "Team.allreduce")
async def allreduce_of_one(team: pgas.Team) -> None:
    await (team.allreduce(1, weft.Reducer.sum) if team.rank == 1 else never())


@wrong_team("main on PE 0 (teams.py:", FUTURE, "Team.broadcast")
async def broadcast_without_root(team: pgas.Team) -> None:
    await (team.broadcast() if team.rank == 1 else never())


@wrong_team("main on PE 1 (teams.py:", FUTURE, "of a team, in which PE 1 has not")
async def allgather_of_one(team: pgas.Team) -> None:
    await (team.allgather(1) if team.rank == 0 else never())


@wrong_team("main on PE 1 (teams.py:", FUTURE, "of a team, in which PE 1 has not")
async def split_of_one(team: pgas.Team) -> None:
    await (team.split(0) if team.rank == 0 else never())


@wrong_team("main on PE 3 (teams.py:", FUTURE, "barrier of a team, in which PE 3 has not", pes=4)
async def barrier_of_half(team: pgas.Team) -> None:
    half = await team.split(team.rank // 2)
    if team.rank == 3:
        await never()
    await half.barrier()
    await team.barrier()


@wrong_team("main on PE 0 waits for main on PE 1, and main on PE 1 for main on PE 0", "barrier of a team")
async def teams_in_other_orders(team: pgas.Team) -> None:
    first = await team.split(0)
    second = await team.split(0)
    for one in (first, second) if team.rank == 0 else (second, first):
        await one.barrier()


@wrong_team(FUTURE, "teams.py:")
async def calls_of_each_other(team: pgas.Team) -> None:
    await team.rpc(1 - team.rank, call_back, team.rank)


@wrong_team("main on PE 1 (teams.py:", FUTURE, "main on PE 0 (teams.py:")
async def fetch_of_nothing(team: pgas.Team) -> None:
    if team.rank == 1:
        await never()
    await pgas.DistObject(team, 1).fetch(1)


@wrong_team("main on PE 1 (teams.py:", FUTURE)
async def array_of_one(team: pgas.Team) -> None:
    await (pgas.make_array(10) if team.rank == 0 else never())


@wrong_team("main on PE 1 (teams.py:", FUTURE, "of a team, in which PE 1 has not")
async def reduce_in_place_of_one(team: pgas.Team) -> None:
    await (team.allreduce_in_place(np.ones(3), weft.Reducer.sum) if team.rank == 0 else never())


@wrong_team("main on PE 0 (teams.py:", "a wait until ", " is at least 2")
async def word_not_set(team: pgas.Team) -> None:
    segment = pgas.make_segment(1, "uint32")
    pointers = await team.allgather(segment.pointer())
    if team.rank == 1:
        await pgas.put(np.uint32(1), pointers[0])
    else:
        await pgas.wait_for(segment.pointer(), 2)


@wrong_team("main on PE ", "a wait until ", " is at least 1")
async def words_of_each_other(team: pgas.Team) -> None:
    """Each PE waits before it writes."""
    segment = pgas.make_segment(1, "uint32")
    pointers = await team.allgather(segment.pointer())
    await pgas.wait_for(segment.pointer(), 1)
    await pgas.put(np.uint32(1), pointers[1 - team.rank])


@wrong(
    "main on PE 1 waits for nothing, and main on PE 0 waits for it",
    "barrier of a team, in which PE 1 has not",
)
async def barrier_of_lone_main() -> None:
    team = pgas.world()
    future: weft.Future[None] = weft.Future()
    team.barrier().then(lambda _: future.set())
    await future


# --- Right ones


@right_team()
async def barrier_late(team: pgas.Team) -> None:
    if team.rank == 1:
        await weft.sleep(LATE_S)
    await team.barrier()


@right_team()
async def barrier_behind_computation(team: pgas.Team) -> None:
    if team.rank == 1:
        compute()
    await team.barrier()


@right_team(looks=0)
async def blocking_barrier_late(team: pgas.Team) -> None:
    if team.rank == 1:
        compute()
    team.blocking_barrier()


@right_team(pes=4)
async def half_waits(team: pgas.Team) -> None:
    half = await team.split(team.rank // 2)
    if team.rank == 3:
        await weft.sleep(LATE_S)
    await half.barrier()
    await team.barrier()


@right_team()
async def call_late(team: pgas.Team) -> None:
    if team.rank == 0:
        await team.rpc(1, late)


@right_team()
async def call_computes(team: pgas.Team) -> None:
    if team.rank == 0:
        await team.rpc(1, compute)


@right_team()
async def fetch_late(team: pgas.Team) -> None:
    if team.rank == 1:
        await weft.sleep(LATE_S)
    shared = pgas.DistObject(team, team.rank)
    await shared.fetch(1 - team.rank)
    await team.barrier()


@right_team()
async def array_late(team: pgas.Team) -> None:
    if team.rank == 1:
        await weft.sleep(LATE_S)
    array = await pgas.make_array(10)
    await array.get(slice(0, 10))
    await team.barrier()


@right_team(looks=0)  # PE 0 ends at once
async def end_late(team: pgas.Team) -> None:
    if team.rank == 1:
        await weft.sleep(LATE_S)


@right_team()
async def word_set_late(team: pgas.Team) -> None:
    segment = pgas.make_segment(1, "uint32")
    pointers = await team.allgather(segment.pointer())
    if team.rank == 1:
        await weft.sleep(LATE_S)
        await pgas.put(np.uint32(1), pointers[0])
    else:
        await pgas.wait_for(segment.pointer(), 1)
    await team.barrier()


@right_team()
async def thread_calls(team: pgas.Team) -> None:
    if team.rank == 1:
        done: weft.Future[None] = weft.Future()
        threading.Timer(LATE_S, done.set).start()
        await done
    await team.barrier()


@right_team()
async def asyncio_late(team: pgas.Team) -> None:
    if team.rank == 1:
        await weft.asyncio_future(asyncio.sleep(LATE_S))
    await team.allreduce(1, weft.Reducer.sum)


@right_team(looks=0)
async def large_copies(team: pgas.Team) -> None:
    """Copies of 16 MiB, again and again."""
    segment = pgas.make_segment(2 << 20)
    pointers = await team.allgather(segment.pointer())
    into = np.empty(2 << 20)
    until = time.monotonic() + LATE_S
    while team.rank == 0 and time.monotonic() < until:
        await pgas.get(pointers[1], out=into)
        await weft.sleep(0.05)
    await team.barrier()


if __name__ == "__main__":
    run_all()
