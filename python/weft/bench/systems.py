"""Which systems there are, by the names that `--against` takes."""

from __future__ import annotations

from weft.bench.errors import BenchError
from weft.bench.programs import Programs
from weft.bench.question import Question
from weft.bench.system import System
from weft.bench.system_python import Charm4py, Mpi4pyOpenMpi
from weft.bench.system_ucx import DEFAULT_SETTINGS, WEFT_SETTINGS, UcxPerftest
from weft.bench.system_weft import weft_systems

REFERENCES = ("ucx", "mpi4py-openmpi", "charm4py")


def reference_systems(names: str, programs: Programs) -> list[System]:
    """The systems named in `names`: "all", "none", or names of REFERENCES with commas between."""
    wanted = REFERENCES if names == "all" else () if names == "none" else tuple(names.split(","))
    for name in wanted:
        if name not in REFERENCES:
            raise BenchError(
                f"no reference system {name!r}: choose all, none or some of {', '.join(REFERENCES)}"
            )
    every: dict[str, list[System]] = {
        "ucx": [
            UcxPerftest("tag", DEFAULT_SETTINGS),
            UcxPerftest("tag", WEFT_SETTINGS),
            UcxPerftest("am", WEFT_SETTINGS),
        ],
        "mpi4py-openmpi": [Mpi4pyOpenMpi(programs)],
        "charm4py": [Charm4py("channel", programs), Charm4py("messaging", programs)],
    }
    return [system for name in wanted for system in every[name]]


def all_systems(question: Question, against: str, programs: Programs) -> list[System]:
    """Weft's own paths for `question`, then the references."""
    own: list[System] = list(weft_systems(programs))
    return own + reference_systems(against, programs)
