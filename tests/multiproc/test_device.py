"""Device memory between two processes: `emulated` everywhere, `cuda` on GPUs (`make test-gpu`)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

NUM_PES = 2
# As in programs/device_probe.cpp: messages per direction and size that start on a device, and on the host.
NUM_SIZES = 6

ON_GPU = pytest.mark.gpu


@pytest.fixture(scope="session")
def device_probe(build_folder: Path) -> Path:
    """programs/device_probe.cpp; its head says what it does."""
    return build_folder / "tests" / "multiproc" / "device_probe"


@pytest.fixture
def need_devices(start_command, device_probe: Path):
    """need_devices(kind, count): skips where there are fewer, or fails where the run is meant for GPUs."""

    def need(kind: str, count: int) -> None:
        outcome = start_command([str(device_probe), "count", kind]).wait()
        there = int(outcome.stdout or 0)
        if there >= count:
            return
        why = f"{count} devices of kind {kind} are needed, and there are {there}: {outcome.stderr.strip()}"
        # A machine with one GPU is a GPU machine too.
        if "WEFT_REQUIRE_GPU" in os.environ and there == 0:
            pytest.fail(f"WEFT_REQUIRE_GPU is set, but {why}")
        pytest.skip(f"NOT TESTED: {why}")

    return need


def moved(outcome) -> list[str]:
    """Where the PEs say that they moved memory."""
    assert outcome.exit_code == 0, outcome.stderr
    return sorted(outcome.stdout.splitlines())


@pytest.mark.parametrize("staging", ["device", "host"])
@pytest.mark.parametrize("way", ["machine", "channel"])
@pytest.mark.parametrize(
    ("kind", "gpus"),
    [
        ("emulated", "auto"),
        pytest.param("cuda", "0", marks=ON_GPU, id="cuda-one"),
        pytest.param("cuda", "0,1", marks=ON_GPU, id="cuda-two"),
    ],
)
def test_buffers_move_right(
    run, device_probe: Path, need_devices, kind: str, gpus: str, way: str, staging: str
) -> None:
    devices = [0, 1] if gpus == "auto" else [int(gpu) for gpu in gpus.split(",")]
    need_devices(kind, len(set(devices)))
    outcome = run("-n", NUM_PES, "--staging", staging, "--gpus", gpus, device_probe, way, kind)
    assert moved(outcome) == [f"PE {pe} moved {kind}:{devices[pe % len(devices)]}" for pe in range(NUM_PES)]
    assert outcome.stderr == ""


@pytest.mark.parametrize("kind", ["emulated", pytest.param("cuda", marks=ON_GPU)])
@pytest.mark.parametrize("staging", ["device", "host"])
def test_statistics_tell_the_path_of_each_transfer(
    run, device_probe: Path, need_devices, kind: str, staging: str
) -> None:
    need_devices(kind, 1)
    outcome = run(
        "-n", NUM_PES, "--staging", staging, "--stats", "--gpus", "auto", device_probe, "channel", kind
    )
    path = "direct" if kind == "cuda" and staging == "device" else "staged"
    for pe in range(NUM_PES):
        lines = [line for line in outcome.stderr.splitlines() if line.startswith(f"weft: PE {pe}: ")]
        sends = [line for line in lines if re.search(rf"tagged send +{kind} ", line)]
        assert len(sends) == 1, outcome.stderr
        assert re.search(rf" {path} +{2 * NUM_SIZES} ", sends[0]), sends[0]
        assert any(re.search(r"tagged send +host +direct ", line) for line in lines)
        assert any(re.search(rf"PE {1 - pe} by .*\w+/\w+", line) for line in lines), outcome.stderr


def with_faults(faults: str) -> dict[str, str]:
    return {**os.environ, "WEFT_EMULATED_FAULTS": faults}


def expect_end(outcome, sentence: str) -> None:
    """The job ends soon, with that sentence on stderr, once."""
    assert outcome.exit_code == 1, outcome.stderr
    assert len(re.findall(sentence, outcome.stderr)) == 1, outcome.stderr


@pytest.mark.parametrize("way", ["machine", "channel"])
def test_a_slow_device_only_takes_its_time(run, device_probe: Path, way: str) -> None:
    outcome = run("-n", NUM_PES, device_probe, way, "emulated", env=with_faults("polls=2000"))
    assert moved(outcome) == ["PE 0 moved emulated:0", "PE 1 moved emulated:1"]


# The first copies fill buffers, later ones stage sends and receives or read back.
@pytest.mark.parametrize("number", range(1, 8))
def test_a_copy_that_fails_ends_the_job(run, device_probe: Path, number: int) -> None:
    environment = with_faults(f"fail_copy={number}")
    only_on_pe_1 = ["sh", "-c", '[ "$WEFT_PE" = 1 ] || unset WEFT_EMULATED_FAULTS; exec "$@"', "sh"]
    outcome = run("-n", NUM_PES, *only_on_pe_1, device_probe, "channel", "emulated", env=environment)
    expect_end(outcome, r"an exception that nobody awaits left .*Mover\[1\]\.move on PE 1")
    assert "by an emulated device failed, as the fault injection says" in outcome.stderr


def test_an_allocation_that_fails_ends_the_job(run, device_probe: Path) -> None:
    outcome = run("-n", NUM_PES, device_probe, "channel", "emulated", env=with_faults("fail_allocation=5"))
    assert re.search(r"allocation 5 of \d+ bytes on emulated:\d failed, as the fault", outcome.stderr)
    assert outcome.exit_code == 1


def test_a_device_that_is_full_ends_the_job(run, device_probe: Path) -> None:
    outcome = run("-n", NUM_PES, device_probe, "channel", "emulated", env=with_faults("device_bytes=100000"))
    assert re.search(
        r"emulated:\d is full: 65537 bytes asked for, \d+ of 100000 bytes in use", outcome.stderr
    )
    assert outcome.exit_code == 1


def test_a_buffer_freed_under_its_send_ends_the_job(run, device_probe: Path) -> None:
    outcome = run("-n", NUM_PES, device_probe, "freed", "emulated")
    expect_end(
        outcome, r"emulated device memory at 0x\w+, was freed while the copy was pending: keep it until"
    )


def test_faults_that_are_none_are_refused(run, device_probe: Path) -> None:
    outcome = run("-n", 1, device_probe, "channel", "emulated", env=with_faults("fail_copies=1"))
    assert "weft: WEFT_EMULATED_FAULTS: 'fail_copies=1' is no fault of the emulated kind" in outcome.stderr
    assert outcome.exit_code == 1
