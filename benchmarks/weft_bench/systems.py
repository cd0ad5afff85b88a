"""Which systems there are, by the names that `--against` takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weft_bench.errors import BenchError
from weft_bench.programs import Programs
from weft_bench.system import System
from weft_bench.system_charm import Charm
from weft_bench.system_gpu import KERNEL_WAYS, Nccl, PeerCopy, PeerKernels
from weft_bench.system_mpi import Mpi
from weft_bench.system_python import Charm4py, Mpi4pyOpenMpi
from weft_bench.system_ucx import DEFAULT_SETTINGS, HOST_SETTINGS, WEFT_SETTINGS, UcxPerftest

REFERENCES = ("ucx", "peer-copy", "nccl", "openmpi", "mpich", "mpi4py-openmpi", "charm++", "charm4py")
#: Of which "all" means those that move memory of that kind at all.
_WITH_MEMORY = {
    "host": ("ucx", "openmpi", "mpich", "mpi4py-openmpi", "charm++", "charm4py"),
    "emulated": ("peer-copy",),
    "cuda": ("ucx", "peer-copy", "nccl", "mpi4py-openmpi"),
}

_OF_MPI = ("openmpi", "mpich", "mpi4py-openmpi")


def reference_systems(
    names: str,
    programs: Programs,
    charm4py_source: Path | None = None,
    memory: str = "host",
    models: Sequence[str] = (),
) -> list[System]:
    """The systems named in `names`: "all", "none", or names of REFERENCES with commas between.

    `charm4py_source` is the folder of a second charm4py, on UCX or on MPI. All are those that may know that
    kind of memory; the MPI libraries among them if the only one of the `models` of Weft is "mpi".
    """
    wanted = _WITH_MEMORY[memory] if names == "all" else () if names == "none" else tuple(names.split(","))
    if names == "all" and list(models) == ["mpi"]:
        wanted = tuple(name for name in wanted if name in _OF_MPI)
    for name in wanted:
        if name not in REFERENCES:
            raise BenchError(
                f"no reference system {name!r}: choose all, none or some of {', '.join(REFERENCES)}"
            )
    settings_of_ucx = HOST_SETTINGS if memory == "host" else (DEFAULT_SETTINGS, WEFT_SETTINGS)
    kernels = KERNEL_WAYS if memory == "cuda" else {}
    every: dict[str, list[System]] = {
        "ucx": [
            *(UcxPerftest("tag", settings, programs) for settings in settings_of_ucx),
            UcxPerftest("am", WEFT_SETTINGS, programs),
        ],
        "peer-copy": [
            PeerCopy(programs),
            *(PeerKernels(programs, path, options) for path, options in kernels.items()),
        ],
        "nccl": [Nccl(programs)],
        "openmpi": [Mpi("openmpi", programs)],
        "mpich": [Mpi("mpich", programs)],
        "mpi4py-openmpi": [Mpi4pyOpenMpi(programs, memory)],
        "charm++": [Charm(way, programs) for way in ("array", "vector", "nocopy")],
        "charm4py": [
            Charm4py(model, programs, source)
            for source in ([None] if charm4py_source is None else [None, charm4py_source])
            for model in ("channel", "messaging")
        ],
    }
    return [system for name in wanted for system in every[name]]
