"""Programs of Python that use MPI: what mpi4py does with the library, done with ctypes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.launch.mpi_compiler import LIBRARY, package_folder

HANG_S = 150
# As mpi4py does: MPI starts with the import, and ends with the interpreter.
BEGIN = """\
import atexit, ctypes, os, sys, threading
mpi = ctypes.CDLL(sys.argv[1])
mpi.MPI_Init(None, None)
atexit.register(mpi.MPI_Finalize)
rank = int(os.environ["WEFT_PE"])
world = ctypes.c_void_p(0x101)
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_program(tmp_path: Path) -> Run:
    """run_program(text, num_pes): the text comes behind BEGIN."""

    def run(text: str, num_pes: int) -> subprocess.CompletedProcess[str]:
        program = tmp_path / "program.py"
        program.write_text(BEGIN + text)
        library = package_folder() / "lib" / LIBRARY
        command = [sys.executable, "-m", "weft", "run", "-n", num_pes, program, library]
        return subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, timeout=HANG_S, check=False
        )

    return run


@pytest.mark.parametrize("num_pes", [2, 4])
def test_a_rank_that_raises_ends_the_job(run_program, num_pes):
    outcome = run_program(
        "print(f'rank {rank} begins')\n"
        "def fail():\n    raise ValueError('rank 1 fails')\n"
        "if rank == 1: fail()\n"
        "mpi.MPI_Barrier(world)\n"
        "mpi.MPI_Barrier(world)\n",
        num_pes,
    )
    assert outcome.returncode == 1
    assert "ValueError: rank 1 fails" in outcome.stderr
    assert "in fail" in outcome.stderr
    assert "weft: rank 1 ends by an exception of Python, which its program has not handled" in outcome.stderr
    assert "rank 1 begins" in outcome.stdout


def test_one_rank_alone_ends_as_without_mpi(run_program):
    outcome = run_program("raise ValueError('fails')\n", 1)
    assert outcome.returncode == 1
    assert outcome.stderr.rstrip().endswith("ValueError: fails")


def test_the_hook_that_was_there_is_called(run_program, monkeypatch, tmp_path):
    """One that a program or a package has set before MPI starts."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.excepthook = lambda *what: print('own hook', what[1], flush=True)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    outcome = run_program("if rank == 1: raise ValueError('fails')\nmpi.MPI_Barrier(world)\n", 2)
    assert "own hook fails" in outcome.stdout
    assert "weft: rank 1 ends by an exception of Python" in outcome.stderr
    assert outcome.returncode == 1


def test_an_exception_that_is_handled_is_none(run_program):
    outcome = run_program(
        "try:\n    raise ValueError('handled')\nexcept ValueError:\n    pass\nsys.stdout.write('ends\\n')\n",
        2,
    )
    assert (outcome.stdout, outcome.stderr, outcome.returncode) == ("ends\nends\n", "", 0)


def test_an_exception_that_the_program_reports_is_none(run_program):
    outcome = run_program(
        "try:\n    raise ValueError('reported')\nexcept ValueError:\n"
        "    if rank == 1: sys.excepthook(*sys.exc_info())\n"
        "sys.stdout.write('ends\\n')\n",
        2,
    )
    assert (outcome.stdout, outcome.returncode) == ("ends\nends\n", 0)
    assert "ValueError: reported" in outcome.stderr


def test_an_interactive_interpreter_goes_on(run_program):
    outcome = run_program("sys.ps1 = '>>> '\nif rank == 1: raise ValueError('shown')\n", 2)
    assert outcome.returncode == 1
    assert outcome.stderr.count("ValueError: shown") == 1
    assert "ends by an exception of Python" not in outcome.stderr


@pytest.mark.parametrize("end", ["sys.exit(7)", "raise SystemExit(7)", "raise ValueError('fails')"])
@pytest.mark.parametrize("num_pes", [1, 2])
def test_the_job_does_not_notice_a_forked_child(run_program, num_pes: int, end: str) -> None:
    outcome = run_program(
        f"if rank == 0 and os.fork() == 0:\n    {end}\n"
        "if rank == 0: sys.stdout.write(f'child {os.waitstatus_to_exitcode(os.wait()[1])}\\n')\n"
        "mpi.MPI_Barrier(world)\n"
        "sys.stdout.write('ends\\n')  # print() writes twice\n",
        num_pes,
    )
    fails = "ValueError" in end
    assert outcome.returncode == 0, outcome.stderr
    assert sorted(outcome.stdout.splitlines()) == [f"child {1 if fails else 7}", *(num_pes * ["ends"])]
    assert ("ValueError: fails" in outcome.stderr) == fails
    assert "weft" not in outcome.stderr


def test_workers_that_a_thread_cannot_start_end_the_job(run_program):
    """As mpi4py's MPIPoolExecutor does, whose results the program awaits."""
    outcome = run_program(
        "sys.modules['mpi4py.futures'] = sys\n"
        "made, alone, no_info = ctypes.c_void_p(), ctypes.c_void_p(0x102), ctypes.c_void_p(0x130)\n"
        "words = [b'/no/such/program', None, 1, no_info, 0, alone, ctypes.byref(made), None]\n"
        "thread = threading.Thread(target=mpi.MPI_Comm_spawn, args=words, daemon=True)\n"
        "thread.start()\n"
        "threading.Event().wait()\n",
        2,
    )
    assert outcome.returncode == 1
    assert "MPI_Comm_spawn cannot start or find the workers of mpi4py's MPIPoolExecutor" in outcome.stderr
    assert "/no/such/program: No such file or directory" in outcome.stderr
    assert "python -m mpi4py.futures" in outcome.stderr
