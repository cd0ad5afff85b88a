"""The chares: a block of the grid with its particles, in host memory."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import weft
from pic_options import pin
from pic_particles import Particles, Values
from pic_problem import Problem
from pic_turns import turns
from pic_verification import Found, examine


@dataclass(frozen=True)
class Setup:
    """The constructor argument of every block.

    There is a sync point before the first timed step, and every `lb_every` steps before and after; 0: none.
    `counts_particles`: the load of a block is the number of its particles, not the time that was measured. In
    host memory it is the number expected for the next period.
    """

    problem: Problem
    kernel: str = "auto"
    memory: str = "host"
    lb_every: int = 0
    warmup: int = 1
    counts_particles: bool = False
    pin: bool = False


class Schedule:
    """What step a block is at, and when it got to sync points. Both kinds of block have one."""

    def __init__(self, setup: Setup) -> None:
        self.lb_every, self.warmup = setup.lb_every, setup.warmup
        self.step = 0
        self.last_step = 0
        self.synced_step = 0
        self.syncs: list[tuple[float, float, int]] = []
        self._sync_s = 0.0

    def is_at_sync(self) -> bool:
        """Whether a sync point is due before this step."""
        timed = self.step - self.warmup
        if self.lb_every == 0 or self.step == self.synced_step or timed % self.lb_every != 0:
            return False
        self.synced_step = self.step
        self._sync_s = time.perf_counter()
        return True

    def expect(self, step: int, *expected: int) -> None:
        """Raises RuntimeError if a message is of another step than one of those."""
        if step not in expected:
            raise RuntimeError(f"particles of step {step} have come in step {self.step}")

    def resumed(self) -> None:
        self.syncs.append((self._sync_s, time.perf_counter(), weft.my_pe()))


@dataclass(frozen=True)
class Account:
    """What a block has done."""

    compute_s: float
    syncs: list[tuple[float, float, int]]


class NewTurns(weft.Chare):
    """One per PE: gives the PE new turns. A process that has survived a loss has those of before."""

    def __init__(self) -> None:
        turns.begin()


class Block(weft.Chare):
    """It sends particles to each partner once a step, and goes on when each partner has sent its own.

    No entry method waits, so a block can move at every sync point.
    """

    def __init__(self, setup: Setup) -> None:
        if setup.pin:
            pin(weft.my_pe())
        self._setup = setup
        self._schedule = Schedule(setup)
        self._particles = Particles(setup.problem, self.index, setup.kernel)
        self._has_moved = False  # in this step
        self._num_arrived = 0  # messages of this step
        # Messages that have come before this block has moved its own particles in that step. A partner is one
        # step ahead at most, because it needs this block's particles for the next.
        self._early: list[Values | None] = []
        self._synced_count: int | None = None  # particles at the last sync point
        self._done: Any = None

    def run(self, last_step: int, done: Any) -> None:
        """Steps until `last_step` is over; `done` gets a contribution then."""
        self._schedule.last_step, self._done = last_step, done
        self._go_on()

    def arrive(self, step: int, particles: Values | None) -> None:
        """The particles that a partner sends in `step`."""
        if self._has_moved and step == self._schedule.step:
            self._particles.put_in(particles)
            self._num_arrived += 1
            if self._num_arrived == len(self._particles.partners):
                self._go_on()
        else:
            self._schedule.expect(step, self._schedule.step + self._has_moved)
            self._early.append(particles)

    def take_turn(self) -> None:
        """Computes a step, and passes the turn on."""
        self._move()
        if self._num_arrived == len(self._particles.partners):
            self._go_on()
        self._give_turn(turns.end())

    def resume_from_sync(self) -> None:
        self._schedule.resumed()
        self._go_on()

    def account(self) -> Account:
        return Account(self._particles.compute_s, self._schedule.syncs)

    def restart_account(self) -> None:
        """The warm-up does not count."""
        self._particles.compute_s = 0.0
        self._schedule.syncs.clear()

    def examine(self, steps: int) -> Found:
        """What the block holds, compared with what must be there after that many steps of the program."""
        particles = self._particles
        return examine(self._setup.problem, particles.values[:, : particles.count], steps)

    def _go_on(self) -> None:
        """Asks for the next turn, unless messages of this step are missing or a sync point is due."""
        schedule = self._schedule
        if self._has_moved:
            if self._num_arrived < len(self._particles.partners):
                return
            self._has_moved, self._num_arrived = False, 0
            schedule.step += 1
        if schedule.step == schedule.last_step:
            done, self._done = self._done, None
            self.contribute(target=done)
        elif schedule.is_at_sync():
            if self._setup.counts_particles:
                self.set_load_s(self._expected_load())
            self.at_sync()
        else:
            self._give_turn(turns.ask(schedule.step, self.index))

    def _give_turn(self, block: int | None) -> None:
        if block is not None:
            self.proxy[block].take_turn()

    def _expected_load(self) -> float:
        """The number of particles in the middle of the next period, if it changes as in the last one."""
        count = self._particles.count
        before, self._synced_count = self._synced_count, count
        return count if before is None else max(count + (count - before) / 2, 0.0)

    def _move(self) -> None:
        step = self._schedule.step
        for partner, leaving in self._particles.move():
            self.proxy[partner].arrive(step, leaving)
        self._has_moved = True
        early, self._early = self._early, []
        self._num_arrived = len(early)
        for message in early:
            self._particles.put_in(message)
