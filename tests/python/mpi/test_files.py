"""Files in programs of C and C++."""

from __future__ import annotations

import subprocess

import pytest


def expect(done: subprocess.CompletedProcess[str], text: str) -> None:
    assert done.stderr == ""
    assert done.stdout == text
    assert done.returncode == 0


@pytest.mark.parametrize("num_pes", [None, 2, 4])
def test_modes_errors_views_and_representations(run_mpi, num_pes):
    expect(run_mpi("files/files", num_pes), f"files of {num_pes or 1} ranks: as expected\n")


@pytest.mark.parametrize("num_pes", [None, 2])
def test_a_program_that_keeps_a_file_open_ends(run_mpi, num_pes):
    expect(run_mpi("files/files", num_pes, "keep"), f"files of {num_pes or 1} ranks: as expected\n")


def test_the_shared_pointer_without_mapped_memory(run_mpi, monkeypatch):
    monkeypatch.setenv("WEFT_PGAS_MAPPING", "off")
    expect(run_mpi("files/files", 3), "files of 3 ranks: as expected\n")


@pytest.mark.parametrize("num_pes", [1, 2])
def test_files_of_several_ranks_in_a_process(compile_program, run_ranks, num_pes):
    program = compile_program("../files/files.c")
    expect(run_ranks(num_pes, 5, program), "files of 5 ranks: as expected\n")


@pytest.mark.parametrize("num_pes", [None, 2, 3])
def test_no_rank_waits_for_one_that_has_failed(run_mpi, num_pes):
    expect(run_mpi("files/faults", num_pes), f"faults of files of {num_pes or 1} ranks: as expected\n")


# The number is a seed; the program draws its accesses from it.
@pytest.mark.parametrize(("num_pes", "seed"), [(1, 1), (2, 2), (4, 3)])
def test_random_accesses_do_what_a_model_says(run_mpi, num_pes, seed):
    done = run_mpi("files/random_files", num_pes, seed, 5, "host")
    expect(done, f"random files of {num_pes} ranks: as the model says\n")


def test_random_accesses_of_device_memory(run_mpi):
    done = run_mpi("files/random_files", 2, 4, 4, "emulated")
    expect(done, "random files of 2 ranks: as the model says\n")


def test_random_accesses_of_several_ranks_in_a_process(compile_program, run_ranks):
    program = compile_program("../files/random_files.cpp")
    expect(run_ranks(2, 5, program, 5, 3, "host"), "random files of 5 ranks: as the model says\n")


@pytest.mark.gpu
def test_random_accesses_of_cuda_memory(need_gpus, run_mpi):
    need_gpus(1)
    done = run_mpi("files/random_files", 2, 6, 3, "cuda")
    expect(done, "random files of 2 ranks: as the model says\n")
