"""weft.pgas: segments, global pointers, copies, atomic operations and global arrays."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import KINDS, RunProgram

everywhere = pytest.mark.parametrize("kind", KINDS)
num_pes_1_to_3 = pytest.mark.parametrize("num_pes", [1, 2, 3])


@pytest.mark.parametrize("mapping", ["on", "off"])
@num_pes_1_to_3
@everywhere
def test_values_and_copies(
    expect_checked: Callable[..., None], kind: str, num_pes: int, mapping: str
) -> None:
    expect_checked(num_pes, "values.py", kind, mapping=mapping)


@pytest.mark.parametrize("mapping", ["on", "off"])
@num_pes_1_to_3
@everywhere
def test_atomic_operations(
    expect_checked: Callable[..., None], kind: str, num_pes: int, mapping: str
) -> None:
    expect_checked(num_pes, "atomics.py", kind, mapping=mapping)


@pytest.mark.parametrize("mapping", ["on", "off"])
@num_pes_1_to_3
@everywhere
def test_global_arrays(expect_checked: Callable[..., None], kind: str, num_pes: int, mapping: str) -> None:
    expect_checked(num_pes, "global_arrays.py", kind, mapping=mapping)


@pytest.mark.parametrize("mapping", ["on", "off"])
@pytest.mark.parametrize("num_pes", [1, 2])
@everywhere
def test_lifetime(expect_checked: Callable[..., None], kind: str, num_pes: int, mapping: str) -> None:
    expect_checked(num_pes, "lifetime.py", kind, mapping=mapping)


@pytest.mark.parametrize("num_pes", [1, 2])
def test_pointers_as_values(expect_checked: Callable[..., None], num_pes: int) -> None:
    expect_checked(num_pes, "pointers.py")


@pytest.mark.parametrize("mapping", ["on", "off"])
@pytest.mark.parametrize("num_pes", [1, 2])
@everywhere
def test_misuse_is_refused(
    expect_checked: Callable[..., None], kind: str, num_pes: int, mapping: str
) -> None:
    expect_checked(num_pes, "misuse.py", kind, mapping=mapping)


@pytest.mark.parametrize("num_pes", [1, 2])
def test_completions_and_streams(expect_checked: Callable[..., None], num_pes: int) -> None:
    expect_checked(num_pes, "completions.py")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "host"])
def test_signals_on_streams(expect_checked: Callable[..., None], kind: str) -> None:
    expect_checked(2, "stream_signals.py", kind)


@num_pes_1_to_3
def test_flags_that_kernels_raise(expect_checked: Callable[..., None], num_pes: int) -> None:
    expect_checked(num_pes, "kernel_flags.py")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "cuda"])
def test_a_flag_that_nothing_raises(expect_checked: Callable[..., None], kind: str) -> None:
    expect_checked(2, "no_flag.py", kind)


def test_kernels_do_not_reach_what_is_not_mapped(expect_checked: Callable[..., None]) -> None:
    expect_checked(2, "not_mapped.py", mapping="off")


def test_flags_of_a_stand_in_for_gpus(
    expect_checked: Callable[..., None], stand_in_cuda: dict[str, str]
) -> None:
    expect_checked(2, "no_flag.py", "cuda", gpus="0,1", environment=stand_in_cuda)
    expect_checked(2, "host_flags.py", gpus="0,1", environment=stand_in_cuda)


def test_a_wait_that_gets_no_signal(run_program: RunProgram) -> None:
    ended = run_program(2, "no_signal.py")
    assert (ended.returncode, ended.stdout) == (0, "all checked\n"), ended.stdout + ended.stderr
    assert "weft: PE 1: a stream waits for a signal that no PE sends" in ended.stderr


@pytest.mark.parametrize("what", ["wait", "gather", "reduce", "flag"])
def test_what_waits_for_a_peer_that_dies(run_program: RunProgram, what: str) -> None:
    ended = run_program(2, "lost_peer.py", what)
    assert ended.returncode != 0
    assert "was killed by signal 9 (SIGKILL)" in ended.stderr
    assert ended.stdout == ""


def test_a_failure_that_nothing_awaits_ends_the_job(run_program: RunProgram) -> None:
    ended = run_program(2, "unawaited.py", mapping="off")
    assert ended.returncode == 1
    assert "byte 800 of segment 1 of PE 1 (host) does not have 8 bytes behind it" in ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
def test_values_that_are_converted(expect_checked: Callable[..., None], num_pes: int) -> None:
    expect_checked(num_pes, "conversions.py")


@pytest.mark.parametrize("mapping", ["on", "off"])
@num_pes_1_to_3
def test_overlapping_copies(expect_checked: Callable[..., None], num_pes: int, mapping: str) -> None:
    expect_checked(num_pes, "overlaps.py", mapping=mapping)


@pytest.mark.parametrize("num_pes", [1, 2])
def test_objects_that_are_dropped(expect_checked: Callable[..., None], num_pes: int) -> None:
    expect_checked(num_pes, "dropped_objects.py")


def test_calls_that_fail_while_parts_are_in_flight(expect_checked: Callable[..., None]) -> None:
    pytest.importorskip("_testcapi", reason="this Python cannot be made to run out of memory")
    expect_checked(2, "failing_calls.py")


def test_operations_that_the_end_of_the_job_cuts_off(expect_checked: Callable[..., None]) -> None:
    expect_checked(2, "cut_off.py", mapping="off")


@pytest.mark.parametrize("mapping", ["on", "off"])
@pytest.mark.parametrize("program", ["values.py", "atomics.py", "lifetime.py", "global_arrays.py"])
def test_a_stand_in_for_gpus(
    expect_checked: Callable[..., None], stand_in_cuda: dict[str, str], program: str, mapping: str
) -> None:
    expect_checked(2, program, "cuda", mapping=mapping, gpus="0,1", environment=stand_in_cuda)


@pytest.mark.parametrize("gpus", ["0,1", "0"])
def test_signals_on_streams_of_a_stand_in_for_gpus(
    expect_checked: Callable[..., None], stand_in_cuda: dict[str, str], gpus: str
) -> None:
    expect_checked(2, "stream_signals.py", "cuda", gpus=gpus, environment=stand_in_cuda)


def test_signals_while_a_graph_is_captured(
    expect_checked: Callable[..., None], stand_in_cuda: dict[str, str]
) -> None:
    expect_checked(1, "captured_signals.py", "cuda", gpus="0", environment=stand_in_cuda)


@pytest.mark.gpu
@pytest.mark.parametrize("gpus", ["0", "0,1"])
def test_flags_that_kernels_on_gpus_raise(
    expect_checked: Callable[..., None], need_gpus: Callable[[int], None], gpus: str
) -> None:
    pytest.importorskip("cupy", reason="cupy is not installed")
    need_gpus(len(gpus.split(",")))
    expect_checked(2, "gpu_flags.py", gpus=gpus)


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_arrays_of_gpu_libraries(expect_checked: Callable[..., None], library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    expect_checked(2, "gpu_arrays.py", "cuda", library)
