"""Heat conduction: a plate with cold edges cools until its hottest point is below a limit.

    weft run -n 2 miniapps/heat_conduction/heat_conduction.py --odf 4 --verify

The plate is cut into strips of rows, which exchange their outer rows over channels. A reduction over all
strips finds the hottest point while they compute: a strip looks at the result at the next check.

The temperatures at the start are two sine waves, for which the result is known: each shrinks by the same
factor in every step. heat_conduction.cpp is the same in C++ and takes as many steps.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

import weft

PROGRAM = "heat_conduction.py"
METHOD = """\
What is timed. From PE 0's broadcast that starts the strips until the last one has answered. The last line is
a JSON object with the time as "value" in seconds, as those of the measuring programs."""
RATE = 0.2  # of the difference to the neighbours that flows in a step
#: The waves at the start: half waves along rows and columns, and the amplitude.
WAVES = ((1, 1, 1.0), (3, 2, 0.5))
TOLERANCE = 1e-10

Values = npt.NDArray[np.float64]


class UserError(Exception):
    """A mistake of the user, reported as one sentence."""


@dataclass(frozen=True)
class Problem:
    """A plate of `size` x `size` points within its edges, in so many strips."""

    size: int
    strips: int
    check_every: int
    until: float

    def rows(self, strip: int) -> tuple[int, int]:
        """The first row of a strip, from 0, and the one behind its last."""
        return self.size * strip // self.strips, self.size * (strip + 1) // self.strips


def temperatures(size: int, first: int, last: int, steps: int) -> Values:
    """The exact ones after so many steps: of the rows from `first` to before `last`, with two edge columns.

    Row -1 and row `size` are edges too.
    """
    spacing = np.pi / (size + 1)
    rows, columns = spacing * (np.arange(first, last) + 1), spacing * np.arange(size + 2)
    total = np.zeros((last - first, size + 2))
    for k, m, amplitude in WAVES:
        shrink = 1.0 - 4.0 * RATE * (np.sin(k * spacing / 2) ** 2 + np.sin(m * spacing / 2) ** 2)
        total += amplitude * shrink**steps * np.outer(np.sin(k * rows), np.sin(m * columns))
    return total


class Strip(weft.Chare):
    """Rows of the plate, with a ghost row above and below."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        first, last = problem.rows(self.index)
        self.now = temperatures(problem.size, first - 1, last + 1, 0)
        self.next = self.now.copy()
        self.flow = np.empty((last - first, problem.size))
        self.above = weft.Channel(self, self.proxy[self.index - 1]) if self.index > 0 else None
        self.below = weft.Channel(self, self.proxy[self.index + 1]) if last < problem.size else None

    async def run(self) -> int:
        """The steps until a check has found the plate cold enough."""
        steps, hottest = 0, None
        while True:
            if steps % self.problem.check_every == 0:
                if hottest is not None and await hottest < self.problem.until:
                    return steps
                hottest = self.allreduce(float(np.abs(self.now[1:-1]).max()), weft.Reducer.max)
            await self.exchange()
            self.update()
            steps += 1

    async def exchange(self) -> None:
        """Sends the outer rows, and sets the ghost rows."""
        operations: list[Any] = []
        for channel, mine, ghost in ((self.above, 1, 0), (self.below, -2, -1)):
            if channel is not None:
                operations += [channel.recv(into=self.now[ghost]), channel.send(self.now[mine])]
        for operation in operations:
            await operation

    def update(self) -> None:
        now, flow = self.now, self.flow
        np.add(now[:-2, 1:-1], now[2:, 1:-1], out=flow)
        flow += now[1:-1, :-2]
        flow += now[1:-1, 2:]
        flow -= 4.0 * now[1:-1, 1:-1]
        flow *= RATE
        np.add(now[1:-1, 1:-1], flow, out=self.next[1:-1, 1:-1])
        self.now, self.next = self.next, self.now

    def largest_error(self, steps: int) -> float:
        """Against the exact temperatures."""
        exact = temperatures(self.problem.size, *self.problem.rows(self.index), steps)
        return float(np.abs(self.now[1:-1] - exact).max())


class Parser(argparse.ArgumentParser):
    """Errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


def parse_options(arguments: list[str]) -> argparse.Namespace:
    """Raises UserError, whose text says what is wrong."""
    assert __doc__ is not None
    parser = Parser(
        prog=PROGRAM,
        usage=f"weft run -n PES {PROGRAM} [options]",
        description=__doc__.partition("\n")[0],
        epilog=METHOD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--size", type=positive, default=96, metavar="N", help="rows and columns of points (96)")
    add("--odf", type=positive, default=4, metavar="N", help="strips per PE (4)")
    add("--until", type=float, default=0.5, metavar="X", help="the temperature to reach, above 0 (0.5)")
    add("--check-every", type=positive, default=20, metavar="N", help="steps between two checks (20)")
    add("--verify", action="store_true", help="compare each point with the exact result")
    options = parser.parse_args(arguments)
    if not 0.0 < options.until < 10.0:
        raise UserError("--until must be above 0 and below 10")
    return options


async def solve(options: argparse.Namespace) -> bool:
    """Whether the result is right, as far as that was asked for."""
    problem = Problem(options.size, weft.num_pes() * options.odf, options.check_every, options.until)
    if problem.strips > problem.size:
        raise UserError(
            f"{problem.size} rows cannot be cut into {problem.strips} strips: use a larger --size"
        )
    print(f"heat conduction in Python: {problem.size} x {problem.size} points in {problem.strips} strips")
    plate = weft.Array(Strip, problem.strips, args=(problem,))
    await plate
    start = time.perf_counter()
    steps = (await plate.run.call())[0]
    seconds = time.perf_counter() - start
    print(f"below {problem.until:g} after {steps} steps; time {seconds:.4f} s")
    verified = None
    if options.verify:
        error = max(await plate.largest_error.call(steps))
        verified = error < TOLERANCE
        print(f"verify: the largest error is {error:.1e}, {'as it should be' if verified else 'TOO LARGE'}")
    print(json.dumps({"metric": "time_s", "value": seconds, "steps": steps, "verified": verified}))
    return verified is not False


async def main() -> None:
    """On PE 0 alone, so that a mistake is reported once."""
    code = 0
    try:
        if not await solve(parse_options(sys.argv[1:])):
            code = 1
    except UserError as error:
        print(f"{PROGRAM}: {error} (see {PROGRAM} --help)", file=sys.stderr)
        code = 2
    weft.exit(code)


if __name__ == "__main__":
    weft.run(main)
