"""PIC with charm4py: the problem and the kernels of pic.py, in chares that its load balancer moves.

python -m charmrun.start +p2 ++local miniapps/pic/pic_charm4py.py --odf 16 --lb-every 10 --verify +balancer
GreedyRefineLB
"""

from __future__ import annotations

import sys
import time
from typing import Any

from charm4py import Array, Chare, Future, charm

from pic_options import Result, at_least, balancing_s, describe, make_parser, pin, problem_of, report
from pic_particles import Particles
from pic_problem import UserError
from pic_turns import turns
from pic_verification import Found, examine, judge

USAGE = "charmrun +pPES pic_charm4py.py [options] [+balancer NAME]"


class Block(Chare):
    """See pic_blocks.py, which does the same with Weft."""

    def __init__(self, problem: Any, kernel: str, lb_every: int, warmup: int, pins: bool) -> None:
        if pins:
            pin(charm.myPe())
        self.lb_every, self.warmup = lb_every, warmup
        self.particles = Particles(problem, self.thisIndex[0], kernel)
        self.step = self.last_step = self.synced_step = 0
        self.has_moved, self.num_arrived = False, 0
        self.early: list[Any] = []
        self.syncs: list[tuple[float, float, int]] = []
        self.sync_s = 0.0
        self.done: Any = None

    def run(self, last_step: int, done: Any) -> None:
        self.last_step, self.done = last_step, done
        self.go_on()

    def arrive(self, step: int, leaving: Any) -> None:
        if self.has_moved and step == self.step:
            self.particles.put_in(leaving)
            self.num_arrived += 1
            if self.num_arrived == len(self.particles.partners):
                self.go_on()
        else:
            self.early.append(leaving)

    def resumeFromSync(self) -> None:  # noqa: N802
        self.syncs.append((self.sync_s, time.perf_counter(), charm.myPe()))
        self.go_on()

    def restart_account(self, done: Any) -> None:
        self.particles.compute_s = 0.0
        self.syncs.clear()
        self.reduce(done)

    def account(self) -> tuple[float, list[tuple[float, float, int]]]:
        return self.particles.compute_s, self.syncs

    def examine(self, steps: int) -> Found:
        particles = self.particles
        return examine(particles.problem, particles.values[:, : particles.count], steps)

    def take_turn(self) -> None:
        self.move()
        if self.num_arrived == len(self.particles.partners):
            self.go_on()
        self.give_turn(turns.end())

    def go_on(self) -> None:
        if self.has_moved:
            if self.num_arrived < len(self.particles.partners):
                return
            self.has_moved, self.num_arrived = False, 0
            self.step += 1
        if self.step == self.last_step:
            self.reduce(self.done)
        elif self.is_at_sync():
            self.AtSync()
        else:
            self.give_turn(turns.ask(self.step, self.thisIndex[0]))

    def give_turn(self, block: int | None) -> None:
        if block is not None:
            self.thisProxy[block].take_turn()

    def is_at_sync(self) -> bool:
        timed = self.step - self.warmup
        if self.lb_every == 0 or self.step == self.synced_step or timed % self.lb_every != 0:
            return False
        self.synced_step = self.step
        self.sync_s = time.perf_counter()
        return True

    def move(self) -> None:
        for partner, leaving in self.particles.move():
            # A call on the same PE passes a reference, and the next step reuses the array.
            self.thisProxy[partner].arrive(self.step, None if leaving is None else leaving.copy())
        self.has_moved = True
        early, self.early = self.early, []
        self.num_arrived = len(early)
        for message in early:
            self.particles.put_in(message)


def solve(options: Any, problem: Any) -> Result:
    blocks = Array(
        Block,
        problem.num_blocks,
        args=[problem, options.kernel, options.lb_every, options.warmup, options.pin],
        useAtSync=options.lb_every > 0,
    )
    warm = Future()
    blocks.run(options.warmup, warm)
    warm.get()
    ready = Future()
    blocks.restart_account(ready)
    ready.get()
    steps = options.warmup + options.steps
    done = Future()
    begin = time.perf_counter()
    blocks.run(steps, done)
    done.get()
    overall_s = time.perf_counter() - begin

    accounts = [blocks[i].account(ret=True).get() for i in range(problem.num_blocks)]
    found = [blocks[i].examine(steps, ret=True).get() for i in range(problem.num_blocks)]
    return Result(
        overall_s=overall_s,
        compute_s=sum(compute_s for compute_s, _ in accounts) / charm.numPes(),
        balancing_s=balancing_s([syncs for _, syncs in accounts]),
        num_syncs=len(accounts[0][1]),
        checksum=sum(found, Found()).checksum,
        verdict=judge(problem, found) if options.verify else None,
    )


def main(arguments: list[str]) -> None:
    code = 0
    try:
        parser = make_parser("pic_charm4py.py", USAGE)
        parser.add_argument("--odf", type=at_least(1), default=1, metavar="N", help="blocks per PE (1)")
        parser.add_argument("--lb-every", type=at_least(0), default=0, metavar="N", help="as in pic.py (0)")
        options = parser.parse_args(arguments[1:])
        problem = problem_of(options, charm.numPes() * options.odf)
        print(
            describe(
                problem, "Python with charm4py", charm.numPes(), options.odf, options.steps, options.warmup
            ),
            flush=True,
        )
        result = solve(options, problem)
        print(report(problem, result, charm.numPes(), options.odf, options.steps), flush=True)
        if result.verdict is not None and not result.verdict.correct:
            code = 1
    except UserError as error:
        print(f"pic_charm4py.py: {error} (see pic_charm4py.py --help)", file=sys.stderr)
        code = 2
    charm.exit(code)


charm.start(main)
