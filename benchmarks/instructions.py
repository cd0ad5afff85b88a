"""Instructions per message on Weft's paths, counted by callgrind: where the time goes, the same in every run.

    python benchmarks/instructions.py [--programs build/benchmarks] [--functions N]

Each program runs twice with different numbers of messages; the difference of the counts over the difference
of the messages is what one message costs: sending, moving and receiving it, in both PEs together. "in UCX" is
what of it is spent in UCX's own libraries, "in Weft" in the program itself; the rest is libc. Of
path_instructions only the function `counted` counts, which runs after the connections are there. In Python
"in Weft" is what is spent in the extension; the rest is Python's and libc's.
--functions lists the N functions that cost most, without those they call.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from weft_bench.programs import Programs

_WINDOW = 64
_PYTHON_PROGRAMS = Path(__file__).parent / "python"


@dataclass(frozen=True)
class Route:
    """A program whose arguments say how many messages it sends, for a count of messages."""

    title: str
    program: str

    def command(self, programs: Programs, messages: int) -> list[str]:
        if self.program.endswith(".py"):
            return [sys.executable, str(_PYTHON_PROGRAMS / self.program), *self.arguments(messages)]
        return [str(programs.need(self.program)), *self.arguments(messages)]

    def is_of_weft(self, file: str) -> bool:
        name = Path(file).name
        return name.startswith("_core.") if self.program.endswith(".py") else name == self.program

    def arguments(self, messages: int) -> list[str]:
        if self.program == "local_entry_rate":
            measured = ["--way", "measured"] if "measured" in self.title else []
            return ["rate", f"8:{messages // _WINDOW}:0", *measured]
        return [self.title.split()[0], str(messages)]


PATHS = (
    Route("machine (tagged, 8 B)", "path_instructions"),
    Route("channel (8 B)", "path_instructions"),
    Route("entry method (8 B)", "path_instructions"),
    Route("traced entry method (8 B)", "path_instructions"),
    Route("local entry method (8 B)", "local_entry_rate"),
    Route("local entry method, measured", "local_entry_rate"),
    Route("send in Python", "local_calls.py"),
    Route("aggregated in Python", "local_calls.py"),
    Route("call in Python", "local_calls.py"),
    Route("coroutine in Python", "local_calls.py"),
    Route("future in Python", "local_calls.py"),
)
_FEW, _MANY = 64 * 50, 64 * 350


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=Path, help="folder of the measuring programs")
    parser.add_argument(
        "--functions", type=int, default=0, metavar="N", help="list the N costliest functions"
    )
    options = parser.parse_args()
    programs = Programs(options.programs)
    print(f"{'path':28}{'instructions':>14}{'in UCX':>10}{'in Weft':>10}")
    for path in PATHS:
        few, many = (count(path.command(programs, messages)) for messages in (_FEW, _MANY))
        cost = {key: (many[key] - few[key]) / (_MANY - _FEW) for key in many if not is_start_up(key[0])}
        total = sum(cost.values())
        in_ucx = sum(value for (file, _), value in cost.items() if "libuc" in file)
        in_weft = sum(value for (file, _), value in cost.items() if path.is_of_weft(file))
        print(f"{path.title:28}{total:14.0f}{in_ucx:10.0f}{in_weft:10.0f}")
        for (file, function), value in Counter(cost).most_common(options.functions):
            print(f"    {value:8.1f}  {Path(file).name:20} {function}")


def is_start_up(file: str) -> bool:
    """Whether `file` runs at start-up only, with a count that differs from run to run."""
    return Path(file).name.startswith(("libucm", "ld-linux"))


def count(command: list[str]) -> Counter[tuple[str, str]]:
    """Instructions by (object file, function), each function's own."""
    with tempfile.TemporaryDirectory(prefix="weft-callgrind-") as folder:
        output = Path(folder) / "callgrind.out"
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", "--dump-line=no"]
        if Path(command[0]).name == "path_instructions":
            valgrind.append("--toggle-collect=*counted*")
        try:
            done = subprocess.run([*valgrind, *command], capture_output=True, text=True)
        except FileNotFoundError:
            raise SystemExit("instructions.py needs valgrind: apt install valgrind") from None
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed under valgrind:\n{done.stderr}")
        return parse(output.read_text())


def parse(text: str) -> Counter[tuple[str, str]]:
    """The self costs in a callgrind file, whose names are given in full once and by number afterwards."""
    names: dict[tuple[str, str], str] = {}
    counts: Counter[tuple[str, str]] = Counter()
    file = function = ""
    cost_of_call_follows = False
    for line in text.splitlines():
        if match := re.match(r"c?(ob|fn)=\((\d+)\)(?: (.*))?$", line):
            kind, number, name = match.groups()
            if name is not None:
                names[kind, number] = name
            if line.startswith("ob="):
                file = names[kind, number]
            elif line.startswith("fn="):
                function = names[kind, number]
        elif line.startswith("calls="):
            cost_of_call_follows = True
        elif match := re.match(r"[+\-*\d]\S* (\d+)$", line):
            if not cost_of_call_follows:
                counts[file, function] += int(match[1])
            cost_of_call_follows = False
    return counts


main()
