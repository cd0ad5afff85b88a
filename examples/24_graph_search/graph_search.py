"""Distances in a random sparse graph: a call for each edge that the search looks at. They travel aggregated.

weft run -n 2 examples/24_graph_search/graph_search.py

A vertex that is reached by a shorter way than before tells its neighbours. Quiescence ends the search.
"""

import math

import weft

VERTICES = 5000
EDGES = 10_000
BLOCKS = 8


def edge(number):
    """The edge with this number, the same on each PE."""
    state = (number * 6364136223846793005 + 1442695040888963407) % 2**64
    state = (state ^ state >> 32) * 6364136223846793005 % 2**64
    return (state >> 32) % VERTICES, state % 2**32 % VERTICES


class Block(weft.Chare):
    """The vertices v with v % BLOCKS == the chare's index."""

    def __init__(self):
        self.neighbours = [[] for _ in range(VERTICES // BLOCKS)]
        self.distances = [math.inf] * (VERTICES // BLOCKS)

    def make_edges(self):
        """Make the block's part of the edges, and tell the blocks of both ends."""
        add_neighbour = self.proxy.aggregated().add_neighbour
        for number in range(self.index, EDGES, BLOCKS):
            one, other = edge(number)
            add_neighbour(one % BLOCKS, one, other)
            add_neighbour(other % BLOCKS, other, one)

    def add_neighbour(self, vertex, neighbour):
        self.neighbours[vertex // BLOCKS].append(neighbour)

    def reach(self, vertex, distance):
        if distance >= self.distances[vertex // BLOCKS]:
            return
        self.distances[vertex // BLOCKS] = distance
        reach = self.proxy.aggregated().reach
        for neighbour in self.neighbours[vertex // BLOCKS]:
            reach(neighbour % BLOCKS, neighbour, distance + 1)

    def get_distances(self):
        return self.distances


async def main():
    blocks = weft.Array(Block, BLOCKS)
    blocks.make_edges()
    await weft.quiescence()
    blocks[0].reach(0, 0)
    await weft.quiescence()
    parts = await blocks.get_distances.call()
    found = [distance for part in parts for distance in part if distance < math.inf]
    most, total = max(found), sum(found)
    print(f"{len(found)} of {VERTICES} vertices are reached, over {most} edges at most, {total} in all")


weft.run(main)
