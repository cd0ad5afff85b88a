"""What a user's C++ programs cost to compile: processor seconds and bytes of machine code.

    python tests/install/compile_cost.py PREFIX [--compiler g++] [--runs 5] [--json FILE]

PREFIX is where `cmake --install build/release --component devel --prefix PREFIX` has installed Weft, or a
clone. Each program is compiled without links, at -O0 and at -O2. Prints the lowest time of all runs, because
other programs only add to it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = {
    "hello": HERE.parents[1] / "examples" / "01_hello" / "hello.cpp",
    "ten_methods": HERE / "programs" / "ten_methods.cpp",
    "channels": HERE / "programs" / "channels.cpp",
}
LEVELS = ("-O0", "-O2")


def compile_once(command: list[str]) -> float:
    """The processor seconds of the command and its children."""
    before = os.times()
    subprocess.run(command, check=True)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def text_bytes(file: Path) -> int:
    done = subprocess.run(["size", file], check=True, capture_output=True, text=True)
    return int(done.stdout.splitlines()[1].split()[0])


def costs(
    prefix: Path, compiler: str, runs: int, programs: dict[str, Path], levels: tuple[str, ...] = LEVELS
) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "program.o"
        for name, source in programs.items():
            for level in levels:
                command = [compiler, "-std=c++20", level, f"-I{prefix / 'include'}", "-c", str(source)]
                seconds = min(compile_once([*command, "-o", str(output)]) for _ in range(runs))
                size = text_bytes(output)
                found.append(
                    {"program": name, "level": level, "cpu_s": round(seconds, 2), "text_bytes": size}
                )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = costs(options.prefix, options.compiler, options.runs, PROGRAMS)
    for one in found:
        print(
            f"{one['program']:12} {one['level']}  {one['cpu_s']:6.2f} s  {one['text_bytes']:8} bytes of code"
        )
    if options.json:
        options.json.write_text("".join(json.dumps(one) + "\n" for one in found), encoding="utf-8")


if __name__ == "__main__":
    main()
