"""The shares that the PEs of a job have in the cores of this host: which cores, and how many threads.

The cores are those that the launcher itself may use (sched_getaffinity): a control group, `taskset` or a
resource manager may leave it a part of the host. Each NUMA node gets PEs in proportion to its cores, and its
cores are divided among its PEs in runs of neighbours. SMT siblings stay together.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import TypeVar

from weft.launch.topology import Core, cpu_list_text, processor_limit, usable_cores

THREADS = "OMP_NUM_THREADS"

_T = TypeVar("_T")


def shares(cores: Sequence[Core], num_pes: int) -> list[list[Core]]:
    """The cores of each PE. With more PEs than cores several PEs share a core, as evenly as possible.

    Args:
        cores: at least one, ordered by node.
        num_pes: at least one.
    """
    if num_pes >= len(cores):
        return [[cores[pe * len(cores) // num_pes]] for pe in range(num_pes)]
    nodes: dict[int, list[Core]] = {}
    for core in cores:
        nodes.setdefault(core.node, []).append(core)
    groups = list(nodes.values())
    if num_pes <= len(groups):  # whole nodes
        parts = _divide(groups, num_pes)
        return [[core for group in part for core in group] for part in parts]
    counts = _apportion([len(group) for group in groups], num_pes)
    return [part for group, count in zip(groups, counts, strict=True) for part in _divide(group, count)]


def binding_lines(parts: Sequence[Sequence[Core]], first_pe: int = 0) -> list[str]:
    """The map, a line for each PE: its CPUs, and the NUMA nodes of them if the PEs use several.

    `first_pe`: the number of the first one.
    """
    several_nodes = len({core.node for part in parts for core in part}) > 1
    lines = []
    for pe, part in enumerate(parts, first_pe):
        cpus = cpu_list_text({cpu for core in part for cpu in core.cpus})
        number = "1 core" if len(part) == 1 else f"{len(part)} cores"
        nodes = f", node {cpu_list_text({core.node for core in part})}" if several_nodes else ""
        lines.append(f"PE {pe} is bound to {number}: CPU {cpus}{nodes}")
    if shared := len(parts) - len({tuple(part) for part in parts}):
        lines.append(f"{len(parts)} PEs have {len(parts) - shared} cores: some share one")
    return lines


def cpus_of(parts: Sequence[Sequence[Core]]) -> list[set[int]]:
    """The CPUs of each share."""
    return [{cpu for core in part for cpu in core.cpus} for part in parts]


def thread_settings(num_pes: int, environment: Mapping[str, str]) -> dict[str, str]:
    """OMP_NUM_THREADS of a PE, its share of the cores; nothing if it is set, or for one PE."""
    if num_pes == 1 or THREADS in environment:
        return {}
    usable = len(usable_cores(os.sched_getaffinity(0)))
    if (limit := processor_limit()) is not None:
        usable = min(usable, limit)
    return {THREADS: str(max(1, usable // num_pes))}


def _divide(things: Sequence[_T], count: int) -> list[list[_T]]:
    """`count` runs of neighbours, whose lengths differ by one at most."""
    ends = [part * len(things) // count for part in range(count + 1)]
    return [list(things[first:last]) for first, last in itertools.pairwise(ends)]


def _apportion(sizes: Sequence[int], count: int) -> list[int]:
    """Divides `count` in proportion to `sizes`, at least one each and at most the size.

    Requires len(sizes) <= count <= sum(sizes).
    """
    given = [1] * len(sizes)
    for _ in range(count - len(sizes)):
        # To the one that has most for each that it has been given.
        best = max(range(len(sizes)), key=lambda i: (given[i] < sizes[i], sizes[i] / (given[i] + 1), -i))
        given[best] += 1
    return given
