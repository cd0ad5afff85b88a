"""Device memory in MPI programs: emulated everywhere, CUDA's on a machine with a GPU."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SUITE = ROOT / "tools" / "mpi4py_suite.py"
ARRAYS = ROOT / "tests" / "mpi" / "device_arrays.py"
EMULATED_ARRAYS = Path(__file__).parent / "emulated_arrays"
SKIPPED = 77

# mpi4py's tests that pass arrays of each kind to messages, collectives and packing.
MODULES = ["test_cco", "test_p2p_buf", "test_pack"]
# On a GPU these tests read array elements one by one, so that all modules and types would take an hour.
GPU_MODULES = ["test_cco_buf", "test_p2p_buf", "test_pack"]
GPU_TYPES = "id"


def expect_success(
    done: subprocess.CompletedProcess[str], program: str, num_pes: int | None, kind: str
) -> None:
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{program} of {num_pes or 1} ranks in {kind} memory: as expected\n"


@pytest.mark.parametrize("program", ["messages", "collectives"])
@pytest.mark.parametrize("num_pes", [None, 1, 2, 3])
def test_emulated_memory_in_all_calls(run_mpi, program, num_pes):
    expect_success(run_mpi(f"device_{program}", num_pes, "emulated"), program, num_pes, "emulated")


@pytest.mark.parametrize(
    "name", ["WEFT_PEER_MEMORY=off", "WEFT_STAGING=host", "WEFT_EMULATED_FAULTS=polls=7"]
)
def test_emulated_memory_by_other_ways(run_mpi, monkeypatch, name):
    monkeypatch.setenv(*name.split("=", 1))
    expect_success(run_mpi("device_messages", 2, "emulated"), "messages", 2, "emulated")


@pytest.mark.gpu
@pytest.mark.parametrize("program", ["messages", "collectives"])
@pytest.mark.parametrize("num_pes", [None, 1, 2])
def test_cuda_memory_in_all_calls(need_gpus, run_mpi, program, num_pes):
    need_gpus(1)
    expect_success(run_mpi(f"device_{program}", num_pes, "cuda"), program, num_pes, "cuda")


# --- Python: mpi4py, which tools/mpi4py_suite.py builds


def run_suite(*arguments: str, path: Path | None = None) -> None:
    environment = dict(os.environ)
    if path is not None:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(path), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, SUITE, "-n", "2", *arguments],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env=environment,
        cwd=ROOT,
    )
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def need_library(name: str) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"NOT TESTED: {name} is not installed")


def included(modules: list[str]) -> list[str]:
    return [word for module in modules for word in ("-i", module)]


@pytest.mark.long
@pytest.mark.timeout(1000)
def test_the_arrays_of_mpi4pys_tests_may_be_in_emulated_memory():
    run_suite("--", "--cupy", *included(MODULES), path=EMULATED_ARRAYS)


@pytest.mark.timeout(1000)
def test_the_arrays_of_mpi4pys_tests_may_be_of_a_few_types():
    run_suite("--arrays", GPU_TYPES, "--", *included(GPU_MODULES), path=EMULATED_ARRAYS)


@pytest.mark.timeout(1000)
def test_python_programs_pass_emulated_arrays():
    run_suite("--program", str(ARRAYS), "emulated", path=EMULATED_ARRAYS)


@pytest.mark.gpu
@pytest.mark.timeout(300)
def test_the_arrays_of_mpi4pys_tests_may_be_on_a_gpu(need_gpus):
    need_gpus(1)
    need_library("cupy")
    run_suite("--arrays", GPU_TYPES, "--", *included(GPU_MODULES))


@pytest.mark.gpu
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("library", ["cupy", "torch", "numba"])
def test_python_programs_pass_arrays_on_a_gpu(need_gpus, library):
    need_gpus(1)
    need_library(library)
    run_suite("--program", str(ARRAYS), library)
