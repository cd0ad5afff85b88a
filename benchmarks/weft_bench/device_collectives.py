"""What ``weft bench device-collectives`` does with its parsed arguments."""

from __future__ import annotations

import argparse
import sys

from weft_bench.errors import BenchError
from weft_bench.gpus import expect_memory, gpu_names
from weft_bench.plot import write_plot
from weft_bench.programs import Programs
from weft_bench.question import Question, default_sizes, parse_sizes
from weft_bench.report import make_console, show
from weft_bench.running import ask_question, expect_runs, launches_of
from weft_bench.schedule import Outcome
from weft_bench.system import System
from weft_bench.system_gpu import Nccl
from weft_bench.system_weft import Weft

_PROGRAM, _NCCL_PROGRAM = "device_collectives.py", "nccl_collectives.py"
_GRAPH = ("--graph",)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, write files; the exit status: 0, or 1 when a system failed or nothing was there."""
    console = make_console()
    total = Outcome()
    try:
        expect_memory(arguments.memory)
        expect_runs(arguments)
        programs = Programs(arguments.programs)
        systems = collective_systems(programs)
        asked = questions(arguments)
        with launches_of(arguments, console) as launches:
            for number, question in enumerate(asked):
                launches.begin_part(len(asked) - number)
                outcome = ask_question(question, systems, arguments.runs, programs, launches)
                show(outcome, console)
                total.add(outcome)
        if arguments.plot:
            write_plot(arguments.plot, total.records)
    except BenchError as error:
        print(f"weft bench: {error}", file=sys.stderr)
        return 1
    return launches.exit_status(1 if total.failed or not total.records else 0)


def collective_systems(programs: Programs) -> list[System]:
    """Weft and NCCL, both queued and in a graph."""
    return [
        Weft("pgas", "python", _PROGRAM, programs, "queued"),
        Nccl(programs, _NCCL_PROGRAM, "queued"),
        Weft("pgas", "python", _PROGRAM, programs, "graph", options=_GRAPH),
        Nccl(programs, _NCCL_PROGRAM, "graph", _GRAPH),
    ]


def questions(arguments: argparse.Namespace) -> list[Question]:
    """One for each operation. Raises BenchError for too few GPUs, and sizes that are no whole elements."""
    pes, memory = arguments.pes, arguments.memory
    if memory == "cuda" and len(gpu_names()) < pes:
        raise BenchError(f"--pes {pes} needs as many GPUs, and there are {len(gpu_names())}")
    devices = tuple(range(pes)) if memory == "cuda" else ()
    found = []
    for operation in arguments.operations:
        sizes = parse_sizes(arguments.sizes) if arguments.sizes else default_sizes(operation, memory)
        for size in sizes:
            if size % (4 * pes) != 0 or size == 0:
                raise BenchError(f"--sizes: {size} bytes are no whole elements of 4 bytes for {pes} PEs")
        found.append(Question(operation, sizes, memory, pes=pes, devices=devices))
    return found
