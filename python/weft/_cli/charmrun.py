"""The command line of charmrun, as one of `weft run`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

#: The folder that makes `import charm4py` and `import charmrun` those of Weft, on sys.path.
ON_PATH = Path(__file__).resolve().parent.parent / "charm4py/on_path"

_STRATEGIES = {
    "GreedyLB": "greedy",
    "GreedyRefineLB": "greedy_refine",
    "RefineLB": "refine",
    "RandCentLB": "random",
    "RotateLB": "rotate",
    "DistributedLB": "diffusion",
    "DiffusionLB": "diffusion",
}
# Options of Charm++ that take a word, and have no meaning here.
_WITH_A_WORD = {
    "++nodelist",
    "++ppn",
    "+LBDebug",
    "+LBPeriod",
    "+libcharm_interface",
    "++remote-shell",
    "+pemap",
}


def charm4py_environment(of: dict[str, str]) -> dict[str, str]:
    """An environment in which Python's `charm4py` is Weft's."""
    path = os.pathsep.join(filter(None, [str(ON_PATH), of.get("PYTHONPATH")]))
    return {**of, "PYTHONPATH": path}


def command(words: Sequence[str]) -> list[str]:
    """The words behind `weft` that do what the words behind `charmrun` ask for.

    Raises:
        ValueError: an option that Weft cannot follow.
    """
    pes, balancer = 1, None
    program: list[str] = []
    rest = iter(words)
    for word in rest:
        if (match := re.fullmatch(r"\+(?:p|n|np)(\d*)", word)) or (word in ("-n", "-np") and not program):
            pes = _number(word, (match and match[1]) or _value(word, rest))
        elif word == "+balancer":
            name = _value(word, rest)
            if name not in _STRATEGIES:
                raise ValueError(f"charmrun: no load balancer {name}; there are {', '.join(_STRATEGIES)}")
            balancer = _STRATEGIES[name]
        elif word == "++mpiexec":
            raise ValueError(
                "charmrun: ++mpiexec is not supported; start the program with mpiexec or srun itself, as in "
                "`mpiexec -n 4 python app.py` (docs/clusters.md)"
            )
        elif word == "++interactive":
            program += ["-m", "charm4py.interactive"]
        elif word in _WITH_A_WORD:
            _value(word, rest)
        elif not word.startswith("+") or (program and not word.startswith(("++", "+LB", "+set"))):
            program.append(word)
    launch = ["run", "--charm4py", "-n", str(pes)]
    return [*launch, *(["--lb", balancer] if balancer else []), *program]


def _value(option: str, rest: Iterator[str]) -> str:
    """The word behind an option."""
    for word in rest:
        return word
    raise ValueError(f"charmrun: {option} needs a word behind it, and is the last one")


def _number(option: str, text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"charmrun: {option} needs a number of PEs, not {text}")
    return int(text)


def start(words: Sequence[str]) -> NoReturn:
    """Runs a command line of charmrun, in place of this process: signals reach the launcher itself."""
    try:
        arguments = command(words)
    except ValueError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    os.execv(sys.executable, [sys.executable, "-m", "weft", *arguments])


if __name__ == "__main__":
    print(ON_PATH)
