"""Spanning trees over PEs, and which PEs share a host."""

from __future__ import annotations

from collections.abc import Sequence

#: The number of the host of each PE, set at the start.
hosts: list[int] = []


def numbered(names: Sequence[str]) -> list[int]:
    """Names of hosts by PE as numbers, in order of the first PE."""
    order = list(dict.fromkeys(names))
    return [order.index(name) for name in names]


def subtrees(root: int, pes: Sequence[int], factor: int) -> list[list[int]]:
    """The subtrees below the root: lists of PEs, their root first. PEs of a host stay together."""
    others = sorted(
        (pe for pe in pes if pe != root), key=lambda pe: (hosts[pe] != hosts[root], hosts[pe], pe)
    )
    if not others:
        return []
    count = min(factor, len(others))
    size, more = divmod(len(others), count)
    found = []
    begin = 0
    for which in range(count):
        end = begin + size + (1 if which < more else 0)
        found.append(others[begin:end])
        begin = end
    return found


def edges(pe: int, root: int, pes: Sequence[int], factor: int) -> tuple[int, list[int]]:
    """The parent of a PE, -1 for the root, and its children."""
    if pe != root and pe not in pes:
        raise ValueError(f"PE {pe} is not one of the tree's: {list(pes)}")
    parent, whole = -1, list(pes)
    while pe != root:
        parent = root
        whole = next(tree for tree in subtrees(root, whole, factor) if pe in tree)
        root = whole[0]
    return parent, [tree[0] for tree in subtrees(root, whole, factor)]
