"""Losses that the program handles by itself (`weft run --on-loss raise`): the job goes on with the other PEs.

No sockets and no processes here: `job` asks, and `service` tells the PEs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable


class Survival:
    """What the programs of one job can outlive, and the PEs that it has lost."""

    def __init__(self) -> None:
        self.lost: set[int] = set()
        self._may_lose_pe_0: dict[int, bool] = {}  # by PE that outlives losses

    def outlives(self, pe: int, *, may_lose_pe_0: bool) -> None:
        """PE `pe` has started and outlives the loss of others."""
        self._may_lose_pe_0[pe] = may_lose_pe_0

    def leave(self, pe: int) -> None:
        """PE `pe` has finished its job."""
        self._may_lose_pe_0.pop(pe, None)

    def obstacle(self, lost: Iterable[int], living: Collection[int]) -> str | None:
        """Why the living PEs, of which none has finished the job, cannot go on without the lost ones."""
        if not living:
            return "no other PE is in the job"
        deaf = [pe for pe in living if pe not in self._may_lose_pe_0]
        if deaf:
            return (
                f"PE {deaf[0]} cannot go on without it: it was starting, or its program cannot outlive "
                "losses (weft.pgas.run, virtual ranks)"
            )
        if 0 in lost and not all(self._may_lose_pe_0[pe] for pe in living):
            return "main runs on PE 0, and the job cannot go on without it"
        return None
