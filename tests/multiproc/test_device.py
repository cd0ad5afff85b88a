"""Device memory between two processes: `emulated` everywhere, `cuda` on GPUs (`make test-gpu`)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

NUM_PES = 2
# As in programs/device_probe.cpp: messages per direction and size that start on a device, and on the host;
# what "mapped" sends from each PE.
NUM_SIZES = 6
NUM_POSTED = 3 * NUM_SIZES + 2
# A buffer's first message takes its tag, and that of the first buffer comes before the ends know each other.
NUM_MAPPED = 2 * NUM_SIZES

ON_GPU = pytest.mark.gpu
# A memory kind, and the devices of the PEs.
KINDS = [
    ("emulated", "auto"),
    pytest.param("cuda", "0", marks=ON_GPU, id="cuda-one"),
    pytest.param("cuda", "0,1", marks=ON_GPU, id="cuda-two"),
]


@pytest.fixture(scope="session")
def device_probe(build_folder: Path) -> Path:
    """programs/device_probe.cpp; its head says what it does."""
    return build_folder / "tests" / "multiproc" / "device_probe"


def moved(outcome) -> list[str]:
    """Where the PEs say that they moved memory."""
    assert outcome.exit_code == 0, outcome.stderr
    return sorted(outcome.stdout.splitlines())


@pytest.mark.parametrize("staging", ["device", "host"])
@pytest.mark.parametrize("way", ["machine", "channel"])
@pytest.mark.parametrize(("kind", "gpus"), KINDS)
def test_buffers_move_right(
    run, device_probe: Path, need_gpus, kind: str, gpus: str, way: str, staging: str
) -> None:
    devices = [0, 1] if gpus == "auto" else [int(gpu) for gpu in gpus.split(",")]
    if kind == "cuda":
        need_gpus(len(set(devices)))
    outcome = run("-n", NUM_PES, "--staging", staging, "--gpus", gpus, device_probe, way, kind)
    assert moved(outcome) == [f"PE {pe} moved {kind}:{devices[pe % len(devices)]}" for pe in range(NUM_PES)]
    assert outcome.stderr == ""


@pytest.mark.parametrize(("kind", "gpus"), KINDS)
def test_processes_map_one_anothers_memory(run, device_probe: Path, need_gpus, kind: str, gpus: str) -> None:
    devices = [0, 1] if gpus == "auto" else [int(gpu) for gpu in gpus.split(",")]
    if kind == "cuda":
        need_gpus(len(set(devices)))
    outcome = run("-n", NUM_PES, "--gpus", gpus, device_probe, "share", kind)
    assert moved(outcome) == [f"PE {pe} moved {kind}:{devices[pe % len(devices)]}" for pe in range(NUM_PES)]


def num_mapped(outcome) -> list[int]:
    """How many messages each PE copied into its peer's memory, by PE."""
    assert outcome.exit_code == 0, outcome.stderr
    found = re.findall(rf"PE \d moved .*, (\d+) of {NUM_POSTED} into mapped", "\n".join(moved(outcome)))
    assert len(found) == NUM_PES, outcome.stdout
    return [int(number) for number in found]


@pytest.mark.parametrize(("kind", "gpus"), KINDS)
def test_posted_messages_go_into_mapped_memory(
    run, device_probe: Path, need_gpus, kind: str, gpus: str
) -> None:
    if kind == "cuda":
        need_gpus(len(set(gpus.split(","))))
    outcome = run("-n", NUM_PES, "--gpus", gpus, device_probe, "mapped", kind)
    assert min(num_mapped(outcome)) >= NUM_MAPPED
    assert outcome.stderr == ""


@pytest.mark.parametrize("setting", ["WEFT_PEER_MEMORY=off", "WEFT_STAGING=host"])
def test_messages_are_kept_from_mapped_memory(run, device_probe: Path, setting: str) -> None:
    name, value = setting.split("=")
    outcome = run("-n", NUM_PES, device_probe, "mapped", "emulated", env={**os.environ, name: value})
    assert num_mapped(outcome) == [0, 0]


def test_another_value_for_peer_memory_is_refused(run, device_probe: Path) -> None:
    environment = {**os.environ, "WEFT_PEER_MEMORY": "ucx"}
    outcome = run("-n", 1, device_probe, "channel", "emulated", env=environment)
    assert "WEFT_PEER_MEMORY='ucx': choose on or off" in outcome.stderr
    assert outcome.exit_code == 2


@pytest.mark.parametrize("kind", ["emulated", pytest.param("cuda", marks=ON_GPU)])
@pytest.mark.parametrize("staging", ["device", "host"])
def test_statistics_tell_the_path_of_each_transfer(
    run, device_probe: Path, need_gpus, kind: str, staging: str
) -> None:
    if kind == "cuda":
        need_gpus(1)
    options = ["-n", NUM_PES, "--staging", staging, "--stats", "--gpus", "auto"]
    environment = {**os.environ, "WEFT_PEER_MEMORY": "off"}  # the same in each run
    outcome = run(*options, device_probe, "channel", kind, env=environment)
    path = "through UCX" if kind == "cuda" and staging == "device" else "staged"
    for pe in range(NUM_PES):
        lines = [line for line in outcome.stderr.splitlines() if line.startswith(f"weft: PE {pe}: ")]
        sends = [line for line in lines if re.search(rf"tagged send +{kind} ", line)]
        assert len(sends) == 1, outcome.stderr
        assert re.search(rf" {path} +{2 * NUM_SIZES} ", sends[0]), sends[0]
        assert any(re.search(r"tagged send +host +through UCX ", line) for line in lines)
        assert any(re.search(rf"PE {1 - pe} by .*\w+/\w+", line) for line in lines), outcome.stderr


@pytest.mark.parametrize("way", ["machine", "channel"])
def test_cuda_moves_right_over_the_stand_in_driver(
    run, device_probe: Path, stand_in_cuda: dict[str, str], way: str
) -> None:
    outcome = run("-n", NUM_PES, "--gpus", "1,0", device_probe, way, "cuda", env=stand_in_cuda)
    assert moved(outcome) == ["PE 0 moved cuda:1", "PE 1 moved cuda:0"]
    assert outcome.stderr == ""


@pytest.mark.parametrize("gpus", ["0", "1,0"])
def test_cuda_messages_go_into_mapped_memory_over_the_stand_in_driver(
    run, device_probe: Path, stand_in_cuda: dict[str, str], gpus: str
) -> None:
    outcome = run("-n", NUM_PES, "--gpus", gpus, device_probe, "mapped", "cuda", env=stand_in_cuda)
    assert min(num_mapped(outcome)) >= NUM_MAPPED
    assert outcome.stderr == ""


def test_gpus_without_peer_access_map_nothing(run, device_probe: Path, stand_in_cuda: dict[str, str]) -> None:
    environment = {**stand_in_cuda, "FAKE_CUDA_NO_PEERS": "1"}
    outcome = run("-n", NUM_PES, "--stats", device_probe, "mapped", "cuda", env=environment)
    assert num_mapped(outcome) == [0, 0]
    why = "peer memory was not used: cuda:0 does not reach the memory of cuda:1"
    assert f"weft: PE 0: {why}\n" in outcome.stderr
    one_gpu = run("-n", NUM_PES, "--gpus", "1", device_probe, "mapped", "cuda", env=environment)
    assert min(num_mapped(one_gpu)) >= NUM_MAPPED


def test_gpus_without_peer_access_are_named_once(
    run, device_probe: Path, stand_in_cuda: dict[str, str]
) -> None:
    environment = {**stand_in_cuda, "FAKE_CUDA_NO_PEERS": "1"}
    outcome = run("-n", NUM_PES, device_probe, "channel", "cuda", env=environment)
    assert outcome.stderr == (
        "weft: the cuda devices of this job have no peer access from 0 to 1, 1 to 0: messages between them "
        "pass through host memory, which is slower; `nvidia-smi topo -p2p r` tells why\n"
    )
    assert moved(outcome) == ["PE 0 moved cuda:0", "PE 1 moved cuda:1"]
    one_gpu = run("-n", NUM_PES, "--gpus", "1", device_probe, "channel", "cuda", env=environment)
    assert one_gpu.stderr == ""
    assert moved(one_gpu) == ["PE 0 moved cuda:1", "PE 1 moved cuda:1"]


def test_a_gpu_that_is_not_there_is_refused(run, device_probe: Path, stand_in_cuda: dict[str, str]) -> None:
    outcome = run("-n", 1, "--gpus", "0,5", device_probe, "channel", "cuda", env=stand_in_cuda)
    assert outcome.stderr.startswith(
        "weft: --gpus (WEFT_GPUS) names device 5: there is no cuda:5: this process has 2"
    )
    assert outcome.exit_code == 1


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
    expect_end(outcome, r"an exception without an awaiting caller left .*Mover\[[01]\]\.move on PE [01]")
    # Of a copy into the peer's memory the peer may tell first, and names where it failed.
    assert re.search(r"Mover\[1\]\.move on PE 1|PE 1 could not send it", outcome.stderr), outcome.stderr
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
        outcome, r"emulated device memory at 0x\w+, was freed while a stream had to use it: keep it until"
    )


def test_faults_that_are_none_are_refused(run, device_probe: Path) -> None:
    outcome = run("-n", 1, device_probe, "channel", "emulated", env=with_faults("fail_copies=1"))
    assert "weft: WEFT_EMULATED_FAULTS: 'fail_copies=1' is no fault of the emulated kind" in outcome.stderr
    assert outcome.exit_code == 1
