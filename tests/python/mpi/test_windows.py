"""One-sided communication in programs of C and C++."""

from __future__ import annotations

import subprocess

import pytest


def expect(done: subprocess.CompletedProcess[str], text: str) -> None:
    assert done.stderr == ""
    assert done.stdout == text
    assert done.returncode == 0


@pytest.mark.parametrize("num_pes", [None, 2, 4])
def test_windows_of_each_flavor(run_mpi, num_pes):
    expect(run_mpi("windows/windows", num_pes), f"windows of {num_pes or 1} ranks: as expected\n")


@pytest.mark.parametrize("num_pes", [None, 2])
def test_a_program_that_keeps_its_windows_ends(run_mpi, num_pes):
    expect(run_mpi("windows/kept_windows", num_pes), f"kept windows of {num_pes or 1} ranks: as expected\n")


def test_memory_that_is_attached_to_dynamic_windows(run_mpi):
    expect(run_mpi("windows/attached", 2), "attached memory of 2 ranks: as expected\n")


def test_accesses_of_more_pieces_than_one_request_describes(run_mpi):
    expect(run_mpi("windows/many_pieces", 2), "many pieces: as expected\n")


@pytest.mark.parametrize("kind", ["allocated", "dynamic"])
def test_what_windows_refuse(run_mpi, kind):
    expect(run_mpi("windows/mistakes", 2, kind), "mistakes of 2 ranks: as expected\n")


def test_small_accumulates_come_between_the_parts_of_large_ones(run_mpi):
    expect(run_mpi("windows/fairness", 2), "accumulates of 2 ranks: as expected\n")


def test_windows_whose_memory_no_other_rank_reaches(run_mpi, monkeypatch):
    monkeypatch.setenv("WEFT_PGAS_MAPPING", "off")
    expect(run_mpi("windows/windows", 3, "unmapped"), "windows of 3 ranks: as expected\n")


@pytest.mark.parametrize("num_pes", [1, 2])
def test_windows_of_several_ranks_in_a_process(compile_program, run_ranks, num_pes):
    program = compile_program("../windows/windows.c")
    expect(run_ranks(num_pes, 5, program), "windows of 5 ranks: as expected\n")


def test_ranks_move_after_they_have_freed_their_windows(compile_program, run_ranks):
    done = run_ranks(2, 4, compile_program("freed_windows.c", "-fPIC"))
    reason = "rank 0 cannot move: it has windows of MPI (2); free them before"
    assert done.stderr.splitlines() == [f"weft: Weft_migrate: {reason}"] * 3
    assert (done.stdout, done.returncode) == ("4 ranks moved\n", 0)


# The number is a seed; the program draws its accesses from it.
@pytest.mark.parametrize(("num_pes", "seed"), [(1, 1), (2, 2), (4, 3)])
def test_random_accesses_do_what_a_model_says(run_mpi, num_pes, seed):
    done = run_mpi("windows/random_windows", num_pes, seed, 5, "host")
    expect(done, f"random windows of {num_pes} ranks: as the model says\n")


def test_random_accesses_by_messages(run_mpi, monkeypatch):
    monkeypatch.setenv("WEFT_PGAS_MAPPING", "off")
    expect(
        run_mpi("windows/random_windows", 3, 4, 3, "host"), "random windows of 3 ranks: as the model says\n"
    )


def test_random_accesses_of_device_memory(run_mpi):
    done = run_mpi("windows/random_windows", 2, 5, 3, "emulated")
    expect(done, "random windows of 2 ranks: as the model says\n")


def test_random_accesses_of_several_ranks_in_a_process(compile_program, run_ranks):
    program = compile_program("../windows/random_windows.cpp")
    expect(run_ranks(2, 4, program, 6, 3, "host"), "random windows of 4 ranks: as the model says\n")


@pytest.mark.parametrize("num_pes", [1, 3])
def test_windows_in_emulated_memory(run_mpi, num_pes):
    done = run_mpi("windows/device_windows", num_pes, "emulated")
    expect(done, f"windows of {num_pes} ranks in emulated memory: as expected\n")


@pytest.mark.gpu
@pytest.mark.parametrize("num_pes", [1, 2])
def test_windows_in_cuda_memory(need_gpus, run_mpi, num_pes):
    need_gpus(1)
    done = run_mpi("windows/device_windows", num_pes, "cuda")
    expect(done, f"windows of {num_pes} ranks in cuda memory: as expected\n")
