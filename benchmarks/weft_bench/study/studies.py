"""The studies that there are: which programs they run, with which options.

A program prints a JSON object as its last line, with the "metric" time_s and as "value" the seconds between
two barriers around its timed part. To add a study, write a function that makes it, and name that in STUDIES.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Callable

from weft_bench.gpus import gpu_names
from weft_bench.study.plan import Group, Study, Variant

#: The variant of each group that the others are compared with.
REFERENCE = "mpi4py"
#: charm4py balances nothing without it.
_CHARM4PY_LB = ("+balancer", "GreedyRefineLB")


@dataclasses.dataclass(frozen=True)
class Option:
    """Of the command line of a study: a whole number, several, or a number above 0, as the default is."""

    name: str
    default: int | float | tuple[int, ...]
    help: str

    @property
    def text(self) -> str:
        """The default, for --help."""
        return ",".join(map(str, self.default)) if isinstance(self.default, tuple) else str(self.default)


STENCIL2D_OPTIONS = (
    Option("--odf", (1, 4), "overdecomposition factors of Weft"),
    Option("--strong-size", 2048, "rows and columns of the whole grid, strong scaling"),
    Option("--weak-size", 1024, "rows and columns of the part of each PE, weak scaling"),
    Option("--iterations", 200, "timed iterations"),
    Option("--iterations-before", 20, "iterations before them"),
)
PIC_OPTIONS = (
    Option("--odf", 8, "the overdecomposition factor beside 1"),
    Option("--lb-every", 10, "steps between two sync points"),
    Option("--size", 2000, "cells along each dimension"),
    Option("--particles", 2_000_000, "particles"),
    Option("--steps", 200, "timed steps"),
    Option("--steps-before", 20, "steps before them, with load balancing too"),
    Option("--ratio", 0.995, "particles of a column over those of the column before"),
)


def default_pes(memory: str, least: int = 1) -> tuple[int, ...]:
    """1, 2, 4, ... up to the GPUs, or the cores, that are here."""
    most = len(gpu_names()) if memory == "cuda" else len(os.sched_getaffinity(0))
    return tuple(pes for pes in (1, 2, 4, 8) if least <= pes <= max(most, least))


def stencil2d(options: argparse.Namespace) -> Study:
    """Strong and weak scaling of Stencil2D: mpi4py beside Weft with several overdecomposition factors."""
    groups = []
    for scaling in options.scaling:
        size = options.strong_size if scaling == "strong" else options.weak_size
        common = (
            *("--scaling", scaling, "--size", str(size), "--pin", "--checksum"),
            *("--iterations", str(options.iterations), "--warmup", str(options.iterations_before)),
        )
        for pes in options.pes or default_pes(options.memory):
            memory = ("--memory", options.memory)
            variants = [
                Variant(f"Weft, ODF {odf}", "weft", "stencil2d.py", (*common, *memory, "--odf", str(odf)))
                for odf in options.odf
            ]
            if options.memory != "emulated":
                twin = Variant(REFERENCE, "mpi4py", "stencil2d_mpi4py.py", (*common, *memory))
                variants = [twin, *variants]
            work = 1 if scaling == "strong" else pes
            groups.append(Group(f"{scaling}, {_pes(pes)}", pes, tuple(variants), scaling, work))
    return Study("stencil2d", tuple(groups), options.trials, options.warmup)


def pic(options: argparse.Namespace) -> Study:
    """An imbalanced PIC: mpi4py beside Weft without and with overdecomposition and load balancing."""
    odf = ("--odf", str(options.odf))
    balanced = (*odf, "--lb-every", str(options.lb_every))
    common = (
        *("--size", str(options.size), "--particles", str(options.particles)),
        *("--steps", str(options.steps), "--warmup", str(options.steps_before)),
        *("--distribution", "geometric", "--ratio", str(options.ratio), "--split", "x", "--pin", "--verify"),
    )
    memory = ("--memory", options.memory)
    weft = (*common, *memory)
    # Blocks know how many particles they will have. On GPUs the measured time is their load.
    load = ("--load", "particles") if options.memory == "host" else ()
    variants = [
        Variant("Weft, ODF 1", "weft", "pic.py", (*weft, "--odf", "1")),
        Variant(f"Weft, ODF {options.odf}", "weft", "pic.py", (*weft, *odf)),
        Variant(
            f"Weft, ODF {options.odf}, LB",
            "weft",
            "pic.py",
            (*weft, *balanced, *load),
            ("--lb", "greedy_refine"),
        ),
    ]
    if options.memory == "host":
        twin = Variant(REFERENCE, "mpi4py", "pic_mpi4py.py", common)
        # Cut along the skew, each rank has as many particles as the others: the best that balancing can give.
        even = Variant(f"{REFERENCE}, split y", "mpi4py", "pic_mpi4py.py", (*common, "--split", "y"))
        charm4py = f"charm4py, ODF {options.odf}, LB"
        variants = [
            twin,
            even,
            *variants,
            Variant(charm4py, "charm4py", "pic_charm4py.py", (*common, *balanced, *_CHARM4PY_LB)),
        ]
    # One PE has nothing to balance. A machine with one GPU shows what overdecomposition costs.
    least = 1 if options.memory == "cuda" and len(gpu_names()) < 2 else 2
    groups = [
        Group(f"geometric, {_pes(pes)}", pes, tuple(variants))
        for pes in options.pes or default_pes(options.memory, least)
    ]
    return Study("pic", tuple(groups), options.trials, options.warmup)


def _pes(pes: int) -> str:
    return "1 PE" if pes == 1 else f"{pes} PEs"


STUDIES: dict[str, tuple[Callable[[argparse.Namespace], Study], tuple[Option, ...]]] = {
    "stencil2d": (stencil2d, STENCIL2D_OPTIONS),
    "pic": (pic, PIC_OPTIONS),
}
