"""PIC: particles in a periodic grid of charges, in blocks that load balancing moves.

    weft run -n 2 --lb greedy_refine miniapps/pic/pic.py --odf 16 --lb-every 10 --verify

pic_problem.py has the problem, pic_particles.py a block's data with the kernels of pic_numba.py,
pic_blocks.py the chares, pic_device.py those whose particles are in the memory of a GPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import weft
from pic_blocks import Block, NewTurns, Setup
from pic_options import Result, at_least, balancing_s, describe, make_parser, problem_of, report
from pic_particles import kernels_named
from pic_problem import Problem, UserError
from pic_verification import Found, judge

USAGE = "weft run -n PES [--lb NAME] pic.py [options]"


def parse_options(arguments: list[str]) -> argparse.Namespace:
    """Raises UserError, whose text says what is wrong and what to write instead."""
    parser = make_parser("pic.py", USAGE)
    add = parser.add_argument
    add("--odf", type=at_least(1), default=1, metavar="N", help="blocks per PE (1)")
    add(
        "--lb-every",
        type=at_least(0),
        default=0,
        metavar="N",
        help="a sync point before the first timed step, and every N steps before and after it; 0: none (0)",
    )
    add(
        "--load",
        choices=["time", "particles"],
        default="time",
        help="what the strategy takes for the load of a block: its measured time, or the number of its "
        "particles (time)",
    )
    add(
        "--memory",
        choices=["host", "emulated", "cuda"],
        default="host",
        help="where the particles are: host, emulated, or cuda, a GPU for each PE, with CuPy (host)",
    )
    add(
        "--protect-every",
        type=at_least(0),
        default=0,
        metavar="N",
        help="keep the blocks in the memory of the job every N timed steps: under weft run --on-loss restart "
        "the program survives the loss of processes, and times what comes after the last loss; 0: never (0)",
    )
    return parser.parse_args(arguments)


def block_class(options: argparse.Namespace) -> type[weft.Chare]:
    """The class of the blocks. Raises UserError if this program or this machine cannot do that."""
    kernels_named(options.kernel)
    if options.memory == "host":
        return Block
    from pic_device import DeviceBlock, expect_usable

    expect_usable(options.memory)
    return DeviceBlock


async def begin_blocks(options: argparse.Namespace, problem: Problem) -> Any:
    """The blocks after the warm-up."""
    counts_particles = options.load == "particles"
    setup = Setup(
        problem,
        options.kernel,
        options.memory,
        options.lb_every,
        options.warmup,
        counts_particles,
        options.pin,
    )
    blocks: Any = await weft.Array(block_class(options), problem.num_blocks, args=(setup,))
    await run_until(options.warmup, blocks)
    await blocks.restart_account.call()
    return blocks


async def run_until(step: int, blocks: Any) -> None:
    done: Any = weft.Future()
    blocks.run(step, done)
    await done


async def solve(options: argparse.Namespace, problem: Problem) -> Result:
    last_step = options.warmup + options.steps
    saved = await weft.recovered()
    await weft.Group(NewTurns)
    if saved is None:
        blocks, step = await begin_blocks(options, problem), options.warmup
    else:
        blocks, step = saved["blocks"], saved["step"]
    begin = time.perf_counter()
    while step < last_step:
        step = min(step + (options.protect_every or options.steps), last_step)
        await run_until(step, blocks)
        if options.protect_every > 0:
            await weft.protect({"blocks": blocks, "step": step})
    overall_s = time.perf_counter() - begin

    accounts = await blocks.account.call()
    found = await blocks.examine.call(last_step)
    return Result(
        overall_s=overall_s,
        compute_s=sum(account.compute_s for account in accounts) / weft.num_pes(),
        balancing_s=balancing_s([account.syncs for account in accounts]),
        num_syncs=len(accounts[0].syncs),
        checksum=sum(found, Found()).checksum,
        verdict=judge(problem, found) if options.verify else None,
    )


async def main() -> None:
    """On PE 0 alone, so that a mistake is reported once."""
    code = 0
    try:
        options = parse_options(sys.argv[1:])
        num_pes = weft.num_pes()
        problem = problem_of(options, num_pes * options.odf)
        print(describe(problem, "Python", num_pes, options.odf, options.steps, options.warmup), flush=True)
        result = await solve(options, problem)
        print(report(problem, result, num_pes, options.odf, options.steps))
        if result.verdict is not None and not result.verdict.correct:
            code = 1
    except UserError as error:
        print(f"pic.py: {error} (see pic.py --help)", file=sys.stderr)
        code = 2
    weft.exit(code)


if __name__ == "__main__":
    weft.run(main)
