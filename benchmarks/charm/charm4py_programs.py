"""Programs that were written for charm4py, on charm4py and on Weft's package of that name, in turn.

    charm4py_programs.py --sources FOLDER --charm4py FOLDER [--pes N] [--runs N] [--only WORD] [--json FILE]

--sources is a clone of charm4py, whose tests and examples run unmodified. --charm4py is the folder in which
the package charm4py with UCX is (benchmarks/README.md); mpiexec starts it. The times are those that a program
prints; charm4py_timed.py takes those of a program that prints none. The table has the medians, and charm4py's
time divided by Weft's: more than 1 is better. The record of a program that fails has "error" and the times so
far, and then the exit status is 1.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import shlex
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from weft_bench.errors import BenchError
from weft_bench.process import capture
from weft_bench.provenance import provenance
from weft_bench.system_python import mpiexec_command

HERE = Path(__file__).resolve().parent
_SECONDS = r"([0-9.]+(?:e-?[0-9]+)?)"


@dataclasses.dataclass(frozen=True)
class Program:
    """`pattern` finds the seconds, or any other time, in what it prints; the last one counts."""

    name: str
    path: str
    arguments: str = ""
    pattern: str = r"^seconds: " + _SECONDS
    #: What it spends its time on: "messages", or "work" of its own.
    kind: str = "messages"


#: A path that begins with "python/" is one of this repository's benchmarks/, and runs on two PEs.
PROGRAMS = (
    Program("ping-pong of calls", "tests/benchmark/pingpong.py", "", r"per iter \(us\)= " + _SECONDS),
    Program("ping-pong of coroutines", "tests/benchmark/pingpong.py", "-t", r"per iter \(us\)= " + _SECONDS),
    Program(
        "channel, 8 B",
        "python/charm4py_pingpong.py",
        "latency 8:20000:2000 --model channel",
        r'"latency_us", "value": ' + _SECONDS,
    ),
    Program(
        "channel, 64 KiB",
        "python/charm4py_pingpong.py",
        "latency 65536:5000:500 --model channel",
        r'"latency_us", "value": ' + _SECONDS,
    ),
    Program(
        "entry method, 8 B",
        "python/charm4py_pingpong.py",
        "latency 8:20000:2000 --model entry",
        r'"latency_us", "value": ' + _SECONDS,
    ),
    Program("array reductions", "tests/reductions/bench_reductions.py", "", r"Program done in " + _SECONDS),
    Program("broadcasts with @when", "tests/when/perf_test.py", "", r"Elapsed= " + _SECONDS),
    Program("stencil with @when", "tests/when/stencil.py"),
    Program(
        "jacobi2d, small blocks",
        "examples/jacobi/jacobi2d.py",
        "256 32",
        r"total time " + _SECONDS,
    ),
    Program(
        "jacobi2d, a block a PE",
        "examples/jacobi/jacobi2d.py",
        "2048 2048 2048 1024",
        r"total time " + _SECONDS,
        "work",
    ),
    Program("wave2d", "examples/wave2d/wave2d.py", "100 -1 --NO-RENDER", r"Total time= " + _SECONDS, "work"),
    Program("shortest paths", "examples/sssp/sssp.py", "1000 10000 10 10", r"Algorithm runtime: " + _SECONDS),
    Program("Cannon", "examples/cannon/cannon.py", "1024 8", r"Elapsed time: " + _SECONDS, "work"),
    Program("pool, Fibonacci", "examples/fibonacci/fib.py", "16", r"elapsed= " + _SECONDS),
    Program("ray, Fibonacci", "examples/ray/fib.py", "14", r"elapsed= " + _SECONDS),
    Program("chares, Fibonacci", "examples/fibonacci/fibonacci_with_futures.py", "30"),
    Program("pool, n queens", "examples/nqueen/nqueen.py", "9 6", r"Time taken: " + _SECONDS),
    Program("pool, map", "examples/parallel-map/square.py"),
    Program("particles", "examples/particle/particle.py", "8 4 200", r"elapsed time= " + _SECONDS, "work"),
    Program(
        "LeanMD",
        "examples/miniapps/LeanMD/main.py",
        "3 3 3 4 100 100",
        r"application time: " + _SECONDS,
        "work",
    ),
)


@dataclasses.dataclass(frozen=True)
class System:
    name: str
    command: tuple[str, ...]
    environment: dict[str, str]

    def time(self, program: Program, sources: Path) -> float:
        """Of one launch, in the unit that the program prints. Raises BenchError."""
        ours = program.path.startswith("python/")
        words = [str((HERE.parent if ours else sources) / program.path), *program.arguments.split()]
        if program.pattern == Program.pattern:
            words.insert(0, str(HERE / "charm4py_timed.py"))
        said = capture([*self.command, *words], f"{program.name} on {self.name}", self.environment)
        found = re.findall(program.pattern, said, re.MULTILINE)
        if not found:
            raise BenchError(f"{program.name} on {self.name} printed no time; the end of it:\n{said[-500:]}")
        return float(found[-1])


def systems(options: argparse.Namespace) -> list[System]:
    bound = options.pes <= len(os.sched_getaffinity(0))
    mpi = mpiexec_command(options.pes)
    if bound:
        mpi[mpi.index("none")] = "core"
    path = ":".join([str(options.charm4py), str(HERE.parent / "python"), os.environ.get("PYTHONPATH", "")])
    first = shlex.split(options.first)
    weft = ["weft", "run", "--charm4py", "-n", str(options.pes), *(["--bind", "core"] if bound else [])]
    return [
        System("charm4py", (*first, *mpi, sys.executable), {"PYTHONPATH": path, "UCX_TLS": options.ucx_tls}),
        System("weft", (*first, *weft), {}),
    ]


def compare(options: argparse.Namespace) -> list[dict[str, object]]:
    """Prints a line for each program as soon as it is known."""
    about = dataclasses.asdict(provenance())
    chosen = [program for program in PROGRAMS if options.only in f"{program.name} {program.path}"]
    if options.pes != 2:
        chosen = [program for program in chosen if not program.path.startswith("python/")]
    both = systems(options)
    records: list[dict[str, object]] = []
    for program in chosen:
        times: dict[str, list[float]] = {system.name: [] for system in both}
        record: dict[str, object] = {
            "bench": "charm4py-programs",
            "program": program.name,
            "path": program.path,
            "arguments": program.arguments,
            "kind": program.kind,
            "pes": options.pes,
            "times": times,
        }
        try:
            for _ in range(options.runs):
                for system in both:
                    times[system.name].append(system.time(program, options.sources))
        except BenchError as error:
            print(f"{program.name}: {error}", flush=True)
            record["error"] = str(error)
        load = os.getloadavg()[0]
        if "error" not in record:
            medians = {name: statistics.median(values) for name, values in times.items()}
            ratio = record["ratio"] = medians["charm4py"] / medians["weft"]
            print(
                f"| {program.name} | `{Path(program.path).name} {program.arguments}` | {program.kind} "
                f"| {medians['charm4py']:.4g} | {medians['weft']:.4g} | {ratio:.2f} | {load:.1f} |",
                flush=True,
            )
        records.append({**record, "load": load, **about})
    return records


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sources", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--charm4py", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--pes", type=int, default=2, metavar="N")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="of each program (%(default)s)")
    parser.add_argument("--only", default="", metavar="WORD", help="programs whose name or path has it")
    parser.add_argument("--ucx-tls", default="^tcp", metavar="LIST", help="UCX_TLS of charm4py (%(default)s)")
    parser.add_argument("--first", default="", metavar="WORDS", help="before both commands, as chrt --rr 1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="one object per line")
    options = parser.parse_args(words)
    try:
        records = compare(options)
    except BenchError as error:
        print(f"charm4py_programs: {error}", file=sys.stderr)
        return 1
    if options.json is not None:
        options.json.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return int(any("error" in record for record in records))


if __name__ == "__main__":
    sys.exit(main())
