"""PGAS teams: one main on every PE, calls of functions, a distributed object, teams and their collectives."""

import weft
import weft.pgas


def insert(counts: weft.pgas.DistObject, word: str) -> None:
    counts.value[word] = counts.value.get(word, 0) + 1


def owner_of(world: weft.pgas.Team, word: str) -> int:
    return ord(word[0]) % world.size


async def main(world: weft.pgas.Team) -> None:
    # A dictionary over all PEs: a word belongs to the rank that its first letter names.
    counts = weft.pgas.DistObject(world, {})
    for word in ("warp", "weft", "loom", "weft", "yarn"):
        await world.rpc(owner_of(world, word), insert, counts, word)
    await world.barrier()
    if world.rank == 0:
        theirs = await counts.fetch(owner_of(world, "weft"))
        print(f"weft was inserted {theirs['weft'] // world.size} times by each of {world.size} PEs")

    parity = await world.split(world.rank % 2, world.rank)
    total = await parity.allreduce(world.rank, weft.Reducer.sum)
    totals = await world.allgather(total)
    if world.rank == 0:
        print(f"the ranks of the even team add up to {totals[0]}")
        if world.size > 1:
            print(f"the ranks of the odd team add up to {totals[1]}")


weft.pgas.run(main)
