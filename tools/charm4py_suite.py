#!/usr/bin/env python3
"""Runs charm4py's own tests and examples on Weft's package charm4py.

Usage: tools/charm4py_suite.py [-n PES] [--time-limit SECONDS] [WORD...]

Gets charm4py's sources with git, and runs the programs that its test_config.json names with `weft run
--charm4py`. With WORDs, those whose path contains one. Prints a line for each program, the last lines of
those that fail, and the number of passes. Sources are kept in build/charm4py; --sources names others.
Exits with 77 and says so if the sources cannot be had; with 1 if a program fails that is not in UNSUPPORTED.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = "1.1"
SKIPPED = 77

# Programs that cannot pass, each with the reason.
UNSUPPORTED = {
    "tests/sections/allreduce.py": "expects an order of all-reduces and a broadcast",
    "tests/thread_entry_methods/test1.py": "reads an attribute of charm4py (_numthreads)",
    "tests/thread_entry_methods/test2.py": "reads an attribute of charm4py (_numthreads)",
    "tests/when/test_when_syntax.py": "tests functions inside charm4py (wait.parse_cond_str)",
    "examples/ray/parameter_server.py": "needs torchvision and a data set",
}


def sources(given: Path | None) -> Path | None:
    """The folder with test_config.json; None if it cannot be had."""
    folder = given or ROOT / "build/charm4py/charm4py"
    if not (folder / "test_config.json").exists() and given is None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        command = ["git", "clone", "--quiet", "--depth", "1", "--branch", f"v{VERSION}"]
        subprocess.run([*command, "https://github.com/charmplusplus/charm4py", str(folder)], check=False)
    return programs(folder) if (folder / "test_config.json").exists() else None


def programs(folder: Path) -> Path:
    """A copy of the programs alone: the package beside them would be found before Weft's."""
    copy = ROOT / "build/charm4py/programs"
    shutil.rmtree(copy, ignore_errors=True)
    for part in ("tests", "examples"):
        shutil.copytree(folder / part, copy / part)
    shutil.copy(folder / "test_config.json", copy)
    return copy


def command_of(test: dict[str, object], pes: int) -> list[str]:
    from weft._cli.charmrun import command

    words = [f"+p{max(pes, int(str(test.get('force_min_processes', 1))))}"]
    if test.get("interactive"):
        words.append("++interactive")
    else:
        words.append(str(test["path"]))
    words += str(test.get("args", "")).split()
    return [sys.executable, "-m", "weft", *command(words)]


def run(test: dict[str, object], folder: Path, pes: int, time_limit_s: float) -> str | None:
    """None if the program has passed, else why not."""
    stdin = (folder / str(test["path"])).open() if test.get("interactive") else None
    try:
        done = subprocess.run(
            command_of(test, pes),
            cwd=folder,
            stdin=stdin or subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=time_limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not over after {time_limit_s:g} s"
    finally:
        if stdin is not None:
            stdin.close()
    if done.returncode == 0:
        return None
    last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
    return f"exit code {done.returncode}\n{last}"


def applies(test: dict[str, object]) -> bool:
    condition = test.get("condition")
    if condition is None:
        return True
    return (condition == "numbaInstalled") == (importlib.util.find_spec("numba") is not None)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-n", type=int, default=4, dest="pes", metavar="PES")
    parser.add_argument("--time-limit", type=float, default=120, metavar="SECONDS")
    parser.add_argument("--sources", type=Path, metavar="FOLDER")
    parser.add_argument("words", nargs="*", metavar="WORD")
    options = parser.parse_args()
    folder = sources(options.sources)
    if folder is None and options.sources is not None:
        parser.error(f"--sources {options.sources}: there is no test_config.json of charm4py")
    if folder is None:
        print("charm4py's sources could not be had with git; is there a network?", file=sys.stderr)
        return SKIPPED
    passed = failed = 0
    for test in json.loads((folder / "test_config.json").read_text(encoding="utf-8")):
        path = str(test["path"])
        if options.words and not any(word in path for word in options.words):
            continue
        if not applies(test):
            print(f"skipped  {path}: {test['condition']} does not hold", flush=True)
            continue
        problem = run(test, folder, options.pes, options.time_limit)
        if problem is None:
            passed += 1
            known = f", although UNSUPPORTED says: {UNSUPPORTED[path]}" if path in UNSUPPORTED else ""
            print(f"passed   {path}{known}", flush=True)
        elif path in UNSUPPORTED:
            print(f"cannot   {path}: {UNSUPPORTED[path]}", flush=True)
        else:
            failed += 1
            print(f"FAILED   {path}: {problem}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
