"""Writes docs/mpi-functions.md: which functions of MPI 5.0 Weft implements."""

from __future__ import annotations

from sources import States
from table import Topic

HEAD = """\
# MPI functions

Weft's `libmpi_abi.so.1` exports all functions of the MPI 5.0 standard ABI, and a profiling name
`PMPI_...` of each. A function that is not implemented yet says so once on stderr, and returns
`MPI_ERR_UNSUPPORTED_OPERATION` through the error handler that applies.

Where a function has a large-count form `..._c`, the state below holds for both forms. This page is
generated from the table in `mpi/functions` by `mpi/generator/generate.py --write`.

Functions beyond the standard have the prefix `MPIX_`: [operations on streams](mpi.md#operations-on-streams),
and [ranks that are lost](mpi.md#ranks-that-are-lost).

"""


def listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) if names else "none"


def functions_page(topics: list[Topic], states: States) -> str:
    functions = [function for topic in topics for function in topic.functions]
    num_done = sum(states.is_implemented(function.name) for function in functions)
    parts = [HEAD, f"Implemented: {num_done} of {len(functions)} functions.\n"]
    for topic in topics:
        done = [function.name for function in topic.functions if states.is_implemented(function.name)]
        missing = [function.name for function in topic.functions if not states.is_implemented(function.name)]
        parts.append(f"\n## {topic.title}\n\nImplemented: {listed(done)}.\n\nNot yet: {listed(missing)}.\n")
    return "".join(parts)
