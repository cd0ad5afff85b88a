"""The PE's own device, and element types and layouts that need care."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from .conftest import RunJob

MISSING = 77


@pytest.mark.parametrize("when", ["never", "before", "inside", "thread", "chosen"])
@pytest.mark.parametrize("num_pes", [1, 3])
def test_the_own_device_is_current_for_libraries_that_need_it(
    expect_success: Callable[..., str], stand_in_cuda: dict[str, str], when: str, num_pes: int
) -> None:
    printed = expect_success(num_pes, "current_device.py", when, environment=stand_in_cuda)
    assert printed == f"{[pe % 2 for pe in range(num_pes)]}\n"


def test_devices_that_the_user_names_are_current(
    expect_success: Callable[..., str], stand_in_cuda: dict[str, str]
) -> None:
    environment = {**stand_in_cuda, "WEFT_GPUS": "1,0"}
    assert expect_success(2, "current_device.py", "named", environment=environment) == "[1, 0]\n"


def test_a_device_that_cannot_be_current_is_a_warning(run_job: RunJob, stand_in_cuda: dict[str, str]) -> None:
    environment = {**stand_in_cuda, "FAKE_CUDA_FAIL": "cuDevicePrimaryCtxRetain"}
    ended = run_job(2, "current_device.py", "fails", environment=environment)
    assert (ended.returncode, ended.stdout) == (0, "[0, 1]\n"), ended.stderr
    warnings = re.findall(
        r"^weft: PE (\d): its own device could not be made the current one.*cuda:(\d)", ended.stderr, re.M
    )
    assert sorted(warnings) == [("0", "0"), ("1", "1")], ended.stderr


def test_memory_on_another_device_is_named_once(run_job: RunJob, stand_in_cuda: dict[str, str]) -> None:
    ended = run_job(2, "other_device.py", environment={**stand_in_cuda, "WEFT_STATS": "1"})
    assert ended.returncode == 0, ended.stderr
    lines = [line for line in ended.stderr.splitlines() if "own device" in line]
    assert len(lines) == 1, ended.stderr
    assert re.match(r"weft: PE 1: memory on cuda:0 was used, .* own device is cuda:1: ", lines[0])


@pytest.mark.parametrize("dtypes", ["own", "package"])
@pytest.mark.parametrize("num_pes", [1, 2])
def test_element_types_that_numpy_lacks(run_job: RunJob, dtypes: str, num_pes: int) -> None:
    expect_checked(run_job(num_pes, "element_types.py", dtypes))


@pytest.mark.parametrize("dtypes", ["own", "package"])
def test_element_types_on_a_device(run_job: RunJob, stand_in_cuda: dict[str, str], dtypes: str) -> None:
    expect_checked(run_job(2, "element_types.py", dtypes, "cuda", environment=stand_in_cuda))


def expect_checked(ended) -> None:
    if ended.returncode == MISSING:
        pytest.skip(f"NOT TESTED: {ended.stderr.strip()}")
    assert (ended.returncode, ended.stdout) == (0, "all checked\n"), ended.stdout + ended.stderr


@pytest.mark.parametrize("num_pes", [1, 2])
def test_packing(expect_success: Callable[..., str], num_pes: int) -> None:
    assert expect_success(num_pes, "packing.py") == "all checked\n"


def test_what_device_says(expect_success: Callable[..., str], stand_in_cuda: dict[str, str]) -> None:
    assert expect_success(1, "named_device.py") == "all checked\n"
    assert expect_success(1, "named_device.py", "cuda", environment=stand_in_cuda) == "all checked\n"


@pytest.mark.gpu
@pytest.mark.parametrize("imported", ["inside the job", "before it"])
@pytest.mark.parametrize("library", ["cupy", "torch", "numba", "jax"])
def test_libraries_on_the_own_gpu(
    run_job: RunJob, need_gpus: Callable[[int], None], library: str, imported: str
) -> None:
    need_gpus(2)
    arguments = [library] if imported == "inside the job" else [library, "before"]
    environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "WEFT_STATS": "1"}
    ended = run_job(2, "gpu_libraries.py", *arguments, environment=environment)
    expect_checked(ended)
    assert "[0, 1]" in ended.stderr
    assert "own device" not in ended.stderr, ended.stderr


@pytest.mark.gpu
def test_memory_on_another_gpu_is_named_once(run_job: RunJob, need_gpus: Callable[[int], None]) -> None:
    need_gpus(2)
    ended = run_job(2, "other_device.py", environment={"WEFT_STATS": "1"})
    assert ended.returncode == 0, ended.stderr
    lines = [line for line in ended.stderr.splitlines() if "own device" in line]
    assert len(lines) == 1 and lines[0].startswith("weft: PE 1: memory on cuda:0 was used"), ended.stderr


@pytest.mark.gpu
def test_a_program_without_gpu_libraries_has_no_context(
    run_job: RunJob, need_gpus: Callable[[int], None]
) -> None:
    need_gpus(1)
    ended = run_job(2, "no_context.py")
    assert (ended.returncode, ended.stdout) == (0, "all checked\n"), ended.stdout + ended.stderr
