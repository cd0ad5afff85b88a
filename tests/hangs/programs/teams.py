"""Programs of teams: rank 0, or rank 1, does not take part in what the other one awaits."""

from __future__ import annotations

import sys

import weft
from weft import pgas


async def never() -> None:
    await weft.Future()  # nothing sets it


async def main(team: pgas.Team) -> None:
    kind = sys.argv[1]
    if kind == "call":
        await (team.rpc(1, never) if team.rank == 0 else team.barrier())
    elif team.rank == 1:
        await never()
    elif kind == "barrier":
        await team.barrier()
    else:
        team.blocking_barrier()


if __name__ == "__main__":
    pgas.run(main)
