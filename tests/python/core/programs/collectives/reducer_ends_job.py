"""A custom reducer ends the job on the PE of the last value. No PE goes on with a value that lacks some.

argv[1] is the reduction: "allreduce" or "reduce" of a team, "group", or "section". argv[2] is how the reducer
ends the job: "raise" or "exit".
"""

import sys

import weft
import weft.pgas as pgas

REDUCTION, END = sys.argv[1:]


def most(a, b):
    if None in (a, b):
        if END == "exit":
            sys.exit(6)
        raise RuntimeError("a rank has no value")
    return max(a, b)


REDUCER = weft.Reducer.custom(most)


class Member(weft.Chare):
    def give(self, target):
        self.contribute(value_of(self.index, weft.num_pes()), REDUCER, target)

    def give_in_section(self, section, target):
        self.contribute(value_of(self.index, 4 * weft.num_pes()), REDUCER, target, section)

    def ready(self):
        pass


def value_of(rank, size):
    return None if rank == size - 1 else rank


async def main(world):
    for _ in range(20):  # so that none is behind
        await world.barrier()
    got = None
    if REDUCTION == "allreduce":
        got = await world.allreduce(value_of(world.rank, world.size), REDUCER)
    elif REDUCTION == "reduce":
        got = await world.reduce(value_of(world.rank, world.size), REDUCER)
        if world.rank != 0:
            await weft.Future()
    elif world.rank == 0:
        future = weft.Future()
        if REDUCTION == "group":
            members = weft.Group(Member)
            await members.ready.call()
            members.give(future)
        else:
            members = weft.Array(Member, 4 * world.size)
            await members.ready.call()
            section = members[1:]
            section.give_in_section(section, future)
        got = await future
    else:
        await weft.Future()
    print("goes on with", got, flush=True)
    await weft.Future()


pgas.run(main)
