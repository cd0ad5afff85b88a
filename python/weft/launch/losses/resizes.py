"""Another number of PEs for a job that runs: what was asked for, and which PEs leave.

No sockets and no processes here: `resizing` asks. A plan says which PEs leave. The PEs protect their chares
for it, so that those that stay have everything, and name it. Then it is carried out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from weft.launch.command import MAX_PES, UsageError
from weft.launch.losses.recovery import VARIABLE, Recovery

DRAIN_VARIABLE = "WEFT_DRAIN_ON"


def recovery_of(environment: Mapping[str, str]) -> Recovery | None:
    """The incarnations of a job with the settings --on-loss and --drain-on.

    Raises:
        UsageError: they do not suit each other.
    """
    on_loss = environment.get(VARIABLE)
    if on_loss in ("restart", "shrink"):
        return Recovery(shrinks=on_loss == "shrink")
    if environment.get(DRAIN_VARIABLE) is not None:
        raise UsageError("--drain-on needs a job that can go on: give --on-loss restart or shrink too")
    return None


@dataclass(frozen=True)
class Plan:
    """`num_pes`: how many PEs there are then. `leaving`: the PEs that leave, in ascending order."""

    number: int
    num_pes: int
    leaving: tuple[int, ...]

    def sentence(self, num_pes: int) -> str:
        """What it does to a job of so many PEs."""
        change = f"the job goes from {num_pes} to {self.num_pes} PE{'' if self.num_pes == 1 else 's'}"
        if not self.leaving:
            return change
        numbers = ", ".join(map(str, self.leaving))
        return f"{change}; PE {numbers} leave{'s' if len(self.leaving) == 1 else ''}"


class Resizes:
    """What one job was asked for. `now` is its number of PEs. `most_pes`: that its ranks of MPI allow."""

    def __init__(self, most_pes: int = MAX_PES) -> None:
        self._most_pes = most_pes
        self._asked: int | None = None
        self._draining: set[int] = set()
        self._plans: dict[int, Plan] = {}  # of this incarnation
        self._next_plan = 1

    def ask(self, num_pes: int, now: int) -> str | None:
        """Asks for a number of PEs. Returns why it is refused; None if it is not."""
        if num_pes < 1:
            return f"{num_pes} PEs: a job has at least one"
        if num_pes > MAX_PES:
            return f"{num_pes} PEs: `weft run` starts at most {MAX_PES}"
        if num_pes > self._most_pes:
            return f"{num_pes} PEs: the job has {self._most_pes} MPI ranks, and each PE has at least one"
        if self._asked is not None or self._draining:
            return (
                f"a resize to {self._target(now)} PEs is under way; it takes effect at the next weft.protect "
                "that is complete"
            )
        if num_pes != now:
            self._asked = num_pes
        return None

    def drain(self, pe: int, now: int) -> str | None:
        """Asks for a job without that PE, besides what was asked for before."""
        if len(self._draining | {pe}) >= now:
            return "all other PEs leave already, or there are none"
        self._draining.add(pe)
        return None

    def is_draining(self, pe: int) -> bool:
        """Whether the job was asked to go on without the PE."""
        return pe in self._draining

    def new_plan(self, now: int) -> Plan | None:
        """What is to be done now. None: nothing, or nothing any more."""
        target = self._target(now)
        leaving = set(self._draining)
        for pe in reversed(range(now)):
            if now - len(leaving) <= target:
                break
            leaving.add(pe)
        if not leaving and target == now:
            self._asked = None
            return None
        plan = Plan(self._next_plan, target, tuple(sorted(leaving)))
        self._next_plan += 1
        self._plans[plan.number] = plan
        return plan

    def plan(self, number: int) -> Plan | None:
        """The plan of that number, unless the incarnation for which it was made has ended."""
        return self._plans.get(number)

    def withdraw(self) -> None:
        """Nothing is asked for any more."""
        self._asked = None
        self._draining.clear()
        self._plans.clear()

    def carried_out(self) -> None:
        """The number of PEs that was asked for is reached. PEs that were to be drained since stay so."""
        self._asked = None

    def begin_again(self, places: Mapping[int, int], num_pes: int) -> bool:
        """The job begins again with so many PEs; `places` has the new number of each PE that is left.

        Returns False if none would be left without those that were to be drained. They stay then.
        """
        self._plans.clear()
        self._draining = {places[pe] for pe in self._draining if pe in places}
        if len(self._draining) < num_pes:
            return True
        self._draining.clear()
        return False

    def _target(self, now: int) -> int:
        draining = len(self._draining)
        if self._asked is None:
            return now - draining
        if self._asked <= now:
            return min(self._asked, now - draining)
        return max(1, self._asked - draining)


def new_places(now: int, gone: Collection[int], num_pes: int) -> dict[int, int]:
    """The number that each PE that is left has among `num_pes`; others are for new processes.

    A PE keeps its number if it can: with another number it gets another GPU.
    """
    left = [pe for pe in range(now) if pe not in gone]
    places = {pe: pe for pe in left if pe < num_pes}
    free = (number for number in range(num_pes) if number not in places)
    return places | {pe: next(free) for pe in left if pe >= num_pes}
