"""``weft study``: its command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft_bench.arguments import above_0, minutes, names, number, numbers
from weft_bench.study.studies import STUDIES, Option

_METHOD = """
A study compares programs. The variants of a group solve the same problem: Weft with several overdecomposition
factors (ODF, blocks per PE), mpi4py with the same kernels, and where it applies charm4py.

Each variant of a group is launched WARMUP times, uncounted, and then TRIALS times. A trial is a fresh job.
The trials of all variants of a group are made in one random order, which the seed decides. The seed is
printed and recorded. The time of a trial is that between two barriers around the timed part of the program,
which has warmed up before.

The report has of each variant the mean with its bootstrapped 99 % interval (percentiles of 20,000 resamples),
the ratio of its mean to that of the first variant of the group, bootstrapped likewise, and the p of the
two-sided Mann-Whitney U test between the two (exact for up to 100 trials, ties included; not corrected for
the number of tests). Efficiency is relative to the same variant on one PE.

The published claims that a study is about are judged from the intervals. reproduced: the whole interval is on
the claimed side of the limit. out of reach here: the number of PEs does not permit the claimed ratio, or one
of the two variants has too few trials. not reproduced: all other cases, also if one of the two has failed.

The folder of --output gets trials.jsonl, report.md and times.png. Each finished trial is written at once. The
same command resumes a study that was interrupted (Ctrl-C, SIGTERM, --minutes): it makes the trials that
trials.jsonl lacks. If that file has trials with other settings, or of another commit or machine, the study is
refused.
"""
_SUMMARIES = {
    "stencil2d": "strong and weak scaling of Stencil2D on Weft and mpi4py",
    "pic": "an imbalanced particle-in-cell code on Weft, mpi4py and charm4py",
}
_MEMORY = "where the data are (host); mpi4py and charm4py are absent where they have no such memory"


def add_parser(subparsers: Any) -> None:
    """Add ``study`` to the subparsers of ``weft``; `function` becomes one of the parsed arguments."""
    study = subparsers.add_parser(
        "study",
        help="compare programs in many trials, and judge published claims",
        description=_METHOD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    studies = study.add_subparsers(dest="study", required=True, metavar="STUDY")
    for name in STUDIES:
        _add_study(studies, name)


def _add_study(studies: Any, name: str) -> None:
    parser = studies.add_parser(
        name,
        help=_SUMMARIES[name],
        description=f"{_SUMMARIES[name].capitalize()}.\n{_METHOD}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trials", type=number, default=20, metavar="N", help="of each variant (20)")
    parser.add_argument("--warmup", type=_count, default=1, metavar="N", help="launches before them (1)")
    parser.add_argument("--pes", type=numbers, metavar="1,2,4", help="numbers of PEs (as many as fit here)")
    parser.add_argument("--memory", choices=["host", "emulated", "cuda"], default="host", help=_MEMORY)
    if name == "stencil2d":
        parser.add_argument(
            "--scaling",
            type=names(("strong", "weak")),
            default=["strong", "weak"],
            metavar="NAME,...",
            help="strong and weak (all)",
        )
    for option in STUDIES[name][1]:
        _add_option(parser, option)
    parser.add_argument("--seed", type=_count, metavar="N", help="decides the order of the trials (drawn)")
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help=f"folder of the results (study-{name} in this folder)"
    )
    parser.add_argument("--fresh", action="store_true", help="discard the trials that DIR has")
    parser.add_argument(
        "--minutes", type=minutes, metavar="M", help="begin no launch after that; resume later (no limit)"
    )
    parser.add_argument("--programs", type=Path, metavar="DIR", help="folder of the programs")
    parser.set_defaults(function=_run)


def _add_option(parser: argparse.ArgumentParser, option: Option) -> None:
    kinds: dict[type, tuple[Callable[[str], Any], str]] = {
        int: (number, "N"),
        float: (above_0, "X"),
        tuple: (numbers, "1,2,4"),
    }
    kind, metavar = kinds[type(option.default)]
    default = list(option.default) if isinstance(option.default, tuple) else option.default
    parser.add_argument(
        option.name, type=kind, default=default, metavar=metavar, help=f"{option.help} ({option.text})"
    )


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return value


def _run(arguments: argparse.Namespace) -> int:
    # Tables and progress bars cost time to import, which `weft run` should not pay.
    from weft_bench.study.command import run

    return run(arguments)
