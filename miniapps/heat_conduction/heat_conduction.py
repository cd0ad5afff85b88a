"""Heat conduction: a plate with cold edges cools until its hottest point is below a limit.

    weft run -n 2 miniapps/heat_conduction/heat_conduction.py --odf 4 --verify

The plate is cut into strips of rows, which exchange their outer rows over channels. A reduction over all
strips finds the hottest point while they compute: a strip looks at the result at the next check. With
--model queued and graph the strips are in device memory, and their streams exchange the rows.

The temperatures at the start are two sine waves, for which the result is known: each shrinks by the same
factor in every step. heat_conduction.cpp is the same in C++, takes as many steps and comes to the same bits.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import NoReturn

import weft
from kernels import make_kernels
from plate import TOLERANCE, Problem, UserError
from strips import STRIPS

PROGRAM = "heat_conduction.py"
METHOD = """\
What is timed. From PE 0's broadcast that starts the strips until the last one has answered. The last line is
a JSON object with the time as "value" in seconds, as those of the measuring programs."""
QUEUED_MODELS = ("queued", "graph")


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
    add(
        "--model",
        choices=[*STRIPS],
        default="channel",
        help="channel: the CPU waits for each row; for device memory: queued: kernels, sends and receives "
        "are queued on the strip's stream; graph: two such steps are captured once, and launched again and "
        "again (channel)",
    )
    add(
        "--memory",
        choices=["host", "emulated", "cuda"],
        default="host",
        help="where the points are: host, emulated, or cuda, a GPU for each PE, with CuPy (host)",
    )
    add("--verify", action="store_true", help="compare each point with the exact result")
    add("--checksum", action="store_true", help="print a checksum of every bit of the result")
    options = parser.parse_args(arguments)
    if not 0.0 < options.until < 10.0:
        raise UserError("--until must be above 0 and below 10")
    if options.model in QUEUED_MODELS:
        from weft_bench.queued_work import why_not_queued

        if why_not := why_not_queued(options.model, options.memory, options.odf):
            raise UserError(why_not)
    return options


async def solve(options: argparse.Namespace) -> bool:
    """Whether the result is right, as far as that was asked for."""
    strips = weft.num_pes() * options.odf
    problem = Problem(options.size, strips, options.check_every, options.until, options.memory)
    if problem.strips > problem.size:
        raise UserError(
            f"{problem.size} rows cannot be cut into {problem.strips} strips: use a larger --size"
        )
    print(f"heat conduction in Python: {problem.size} x {problem.size} points in {problem.strips} strips")
    make_kernels(options.memory)  # what is missing is better reported here
    plate = weft.Array(STRIPS[options.model], problem.strips, args=(problem,))
    await plate.prepare.call()
    start = time.perf_counter()
    steps = (await plate.run.call())[0]
    seconds = time.perf_counter() - start
    print(f"below {problem.until:g} after {steps} steps; time {seconds:.4f} s")
    verified = None
    if options.verify:
        error = max(await plate.largest_error.call(steps))
        verified = error < TOLERANCE
        print(f"verify: the largest error is {error:.1e}, {'as it should be' if verified else 'TOO LARGE'}")
    if options.checksum:
        print(f"checksum {sum(await plate.checksum.call()) % 2**64:016x}")
    print(json.dumps({"metric": "time_s", "value": seconds, "steps": steps, "verified": verified}))
    return verified is not False


async def main() -> None:
    """On PE 0 alone, so that a mistake is reported once."""
    code = 0
    try:
        if not await solve(parse_options(sys.argv[1:])):
            code = 1
    except (UserError, weft.Error) as error:
        print(f"{PROGRAM}: {error} (see {PROGRAM} --help)", file=sys.stderr)
        code = 2
    weft.exit(code)


if __name__ == "__main__":
    if any(word.endswith(QUEUED_MODELS) for word in sys.argv[1:]):
        from weft_bench.queued_work import ask_for_device_queues

        ask_for_device_queues(sys.argv[1:])
    weft.run(main)
