"""Global memory between processes: host and device segments, mapped and through the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

KINDS = ["host", "emulated", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(scope="session")
def pgas_probe(build_folder: Path) -> Path:
    """programs/pgas_probe.cpp; its head says what it does."""
    return build_folder / "tests" / "multiproc" / "pgas_probe"


def environment(**settings: str) -> dict[str, str]:
    return {**os.environ, **settings}


@pytest.mark.parametrize("num_pes", [1, 2, 3])
@pytest.mark.parametrize("mapping", ["on", "off"])
@pytest.mark.parametrize("kind", KINDS)
def test_copies_and_atomic_operations(
    run, pgas_probe: Path, need_gpus, kind: str, mapping: str, num_pes: int
) -> None:
    if kind == "cuda":
        need_gpus(1)
    outcome = run("-n", num_pes, pgas_probe, "copies", kind, env=environment(WEFT_PGAS_MAPPING=mapping))
    assert outcome.stderr == ""
    assert outcome.stdout == "copies: right\n"


@pytest.mark.parametrize("peers", ["peers", "no peers"])
@pytest.mark.parametrize("mapping", ["on", "off"])
@pytest.mark.parametrize("what", ["copies", "freed"])
def test_a_stand_in_for_gpus(
    run, pgas_probe: Path, stand_in_cuda: dict[str, str], what: str, mapping: str, peers: str
) -> None:
    settings = {**stand_in_cuda, "WEFT_PGAS_MAPPING": mapping}
    if peers == "no peers":
        settings["FAKE_CUDA_NO_PEERS"] = "1"
    outcome = run("-n", 2, "--gpus", "0,1", pgas_probe, what, "cuda", env=settings)
    assert outcome.stdout == f"{what}: right\n", outcome.stderr


def test_an_owner_that_computes_is_not_needed(run, pgas_probe: Path) -> None:
    outcome = run("-n", 2, pgas_probe, "idle")
    assert outcome.stderr == ""
    assert outcome.stdout == "idle: right\n"


@pytest.mark.parametrize("mapping", ["on", "off"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_freed_segment_is_refused(run, pgas_probe: Path, need_gpus, kind: str, mapping: str) -> None:
    if kind == "cuda":
        need_gpus(1)
    outcome = run("-n", 2, pgas_probe, "freed", kind, env=environment(WEFT_PGAS_MAPPING=mapping))
    assert outcome.stderr == ""
    assert outcome.stdout == "freed: right\n"


def test_a_setting_that_does_not_exist_is_refused(run, pgas_probe: Path) -> None:
    outcome = run("-n", 1, pgas_probe, "copies", env=environment(WEFT_PGAS_MAPPING="maybe"))
    assert outcome.exit_code == 1
    assert "WEFT_PGAS_MAPPING is 'maybe': give on or off" in outcome.stderr
