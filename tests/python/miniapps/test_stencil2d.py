"""Stencil2D on Weft and on mpi4py: right to the last bit however it is cut, and clear about mistakes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from weft_bench.gpus import gpu_names
from weft_bench.record import read_records
from weft_bench.system_python import mpiexec, mpiexec_command

# A job that takes longer hangs.
HANG_S = 150
VERIFIED = "values equal those of the serial reference to the last bit"


@pytest.fixture
def run_twin(program, tmp_path):
    """Runs stencil2d_mpi4py.py on so many ranks; the finished process."""
    pytest.importorskip("mpi4py", reason="NOT TESTED: the twin of Stencil2D needs mpi4py")
    if mpiexec() is None:
        pytest.skip("NOT TESTED: the twin of Stencil2D needs an mpiexec")

    def run(ranks: int, *arguments: object):
        script = str(program("stencil2d_mpi4py", "python"))
        return subprocess.run(
            [*mpiexec_command(ranks), sys.executable, script, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            cwd=tmp_path,
        )

    return run


def expect_verified(done) -> dict[str, object]:
    """The JSON object of a run that was right."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(VERIFIED) == 1
    fields = json.loads(done.stdout.splitlines()[-1])
    assert fields["metric"] == "time_s"
    assert fields["value"] > 0
    assert fields["verified"] is True
    return fields


# PEs, ODF, size: one block; several per PE; sizes that do not divide; one point per block; long, flat.
CASES = [
    (None, 1, "16"),
    (1, 1, "16"),
    (1, 4, "13 12"),
    (2, 1, "17 11"),
    (2, 1, "11 17"),
    (2, 4, "19 13"),
    (4, 1, "16"),
    (4, 4, "17 23"),
    (4, 4, "4"),
    (2, 4, "1 29"),
    (2, 4, "29 1"),
]


@pytest.mark.parametrize(("num_pes", "odf", "size"), CASES)
@pytest.mark.parametrize("memory", ["host", "emulated"])
def test_is_right_however_it_is_cut(
    run_example, memory: str, num_pes: int | None, odf: int, size: str
) -> None:
    arguments = ["--size", *size.split(), "--odf", odf, "--iterations", 12, "--warmup", 3, "--verify"]
    done = run_example(
        "stencil2d", "python", num_pes, *arguments, "--memory", memory, "--kernel", "numpy", "--pin"
    )
    fields = expect_verified(done)
    assert done.stderr == ""
    assert (fields["pes"], fields["odf"], fields["iterations"]) == (num_pes or 1, odf, 12)


@pytest.mark.parametrize("model", ["queued", "graph"])
@pytest.mark.parametrize(
    ("num_pes", "odf", "size"), [(1, 4, "13 12"), (2, 1, "17 11"), (2, 4, "19 13"), (3, 2, "4 7")]
)
def test_streams_that_exchange_halos_come_to_the_same_bits(
    run_example, num_pes: int, odf: int, size: str, model: str
) -> None:
    arguments = ["--size", *size.split(), "--odf", odf, "--iterations", 120, "--warmup", 3, "--verify"]
    done = run_example("stencil2d", "python", num_pes, *arguments, "--memory", "emulated", "--model", model)
    expect_verified(done)
    assert done.stderr == ""


@pytest.mark.parametrize("memory", ["host", "emulated"])
def test_large_halos(run_example, memory: str) -> None:
    arguments = ["--size", 4, 20_000, "--odf", 2, "--iterations", 5, "--warmup", 2, "--verify"]
    expect_verified(run_example("stencil2d", "python", 2, *arguments, "--memory", memory))
    if memory == "emulated":
        expect_verified(
            run_example("stencil2d", "python", 2, *arguments, "--memory", memory, "--model", "graph")
        )


@pytest.mark.parametrize("memory", ["host", "emulated"])
def test_blocks_move_between_iterations(run_example, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_LB", "rotate")  # every block moves at every sync point
    monkeypatch.setenv("WEFT_LB_VERBOSE", "1")
    arguments = ["--size", 17, 23, "--odf", 4, "--iterations", 11, "--warmup", 3, "--verify"]
    done = run_example(
        "stencil2d", "python", 2, *arguments, "--memory", memory, "--lb-every", 3, "--kernel", "numpy"
    )
    expect_verified(done)
    assert done.stderr.count("load balancing of MovableBlock") == 3
    assert done.stderr.count(" 8 moves") == 3


def test_kernels_agree(run_example) -> None:
    pytest.importorskip("numba", reason="NOT TESTED: it compares Numba's kernel with NumPy's")
    arguments = ["--size", 33, 41, "--odf", 4, "--iterations", 10, "--verify", "--kernel", "numba"]
    expect_verified(run_example("stencil2d", "python", 2, *arguments))


@pytest.mark.parametrize(
    ("ranks", "size", "kernel"),
    [(1, "16", "numpy"), (2, "17 11", "auto"), (2, "11 17", "numpy"), (4, "13", "numpy")],
)
def test_the_twin_is_right(run_twin, ranks: int, size: str, kernel: str) -> None:
    arguments = ["--size", *size.split(), "--iterations", 12, "--warmup", 3, "--verify", "--kernel", kernel]
    fields = expect_verified(run_twin(ranks, *arguments, "--pin"))
    assert (fields["pes"], fields["odf"]) == (ranks, 1)


def test_both_programs_have_the_same_checksum(run_example, run_twin) -> None:
    arguments = ["--size", 17, 11, "--iterations", 6, "--kernel", "numpy"]
    checksums = []
    for run in (
        lambda *more: run_example("stencil2d", "python", 2, *more, "--odf", 3),
        lambda *m: run_twin(2, *m),
    ):
        for more in ([], ["--checksum"], ["--checksum", "--warmup", 11]):
            done = run(*arguments, *more)
            assert done.returncode == 0, done.stdout + done.stderr
            checksums.append(json.loads(done.stdout.splitlines()[-1])["checksum"])
    assert checksums[:3] == checksums[3:]
    assert checksums[0] is None
    assert len(set(checksums)) == 3, "another number of iterations has another result"


def test_the_grid_grows_in_weak_scaling(run_example, run_twin) -> None:
    arguments = ["--scaling", "weak", "--size", 8, 12, "--iterations", 4, "--verify"]
    for done in (run_example("stencil2d", "python", 2, *arguments), run_twin(2, *arguments)):
        assert expect_verified(done)["size_bytes"] == 8 * 16 * 12
        assert "16 x 12 points" in done.stdout


def test_records(run_example, run_twin, tmp_path) -> None:
    file = tmp_path / "times.json"
    arguments = ["--size", 8, 9, "--iterations", 6, "--warmup", 2, "--json", file, "--pin"]
    jobs = (
        (lambda: run_example("stencil2d", "python", 2, *arguments, "--odf", 2), "weft", "channel", 2),
        (lambda: run_twin(2, *arguments), "mpi4py-openmpi", "mpi", 1),
    )
    for run, system, model, odf in jobs:
        assert run().returncode == 0
        (record,) = read_records(file)
        assert (record.bench, record.system, record.model) == ("stencil2d", system, model)
        assert (record.memory, record.language, record.metric) == ("host", "python", "time_s")
        assert (record.pes, record.size_bytes, record.warmup) == (2, 8 * 8 * 9, 2)
        assert record.path == f"strong, 8x9 points, ODF {odf}, 6 iterations"
        assert record.median > 0


@pytest.mark.gpu
@pytest.mark.parametrize("gpus", ["0", "0,1"])
@pytest.mark.parametrize("odf", [1, 4])
def test_gpu_memory_gives_the_same_values(run_example, need_gpus, monkeypatch, odf: int, gpus: str) -> None:
    need_gpus(len(gpus.split(",")))
    pytest.importorskip("cupy", reason="NOT TESTED: kernels on GPUs need CuPy")
    monkeypatch.setenv("WEFT_GPUS", gpus)
    arguments = ["--size", 170, 131, "--odf", odf, "--iterations", 7, "--warmup", 2, "--verify"]
    expect_verified(run_example("stencil2d", "python", 2, *arguments, "--memory", "cuda"))


def test_a_machine_without_a_gpu_is_told_in_a_sentence(run_example, run_twin) -> None:
    if (names := gpu_names()) != ():
        pytest.skip(f"this machine has a GPU ({names[0]})")
    for done in (run_example("stencil2d", "python", 2, "--memory", "cuda"), run_twin(1, "--memory", "cuda")):
        assert done.returncode == 2
        assert "--memory cuda" in done.stderr.splitlines()[0]


MISTAKES = [
    (["--size", 0], "must be a whole number of at least 1, not '0'"),
    (["--size", 8, 8, 8], "--size takes one number, or two: ROWS COLUMNS"),
    (["--size", 1], "cannot be cut into"),
    (["--iterations", "x"], "must be a whole number of at least 1, not 'x'"),
    (["--memory", "disk"], "invalid choice"),
    (["--no-such-option"], "unrecognized arguments"),
]


@pytest.mark.parametrize(("arguments", "part"), MISTAKES)
def test_mistakes_are_one_sentence(run_example, run_twin, arguments: list[object], part: str) -> None:
    done = run_example("stencil2d", "python", 2, *arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("stencil2d.py: ")
    assert part in line
    assert line.endswith("--help)")
    done = run_twin(2, *arguments)
    assert done.returncode == 2
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("stencil2d_mpi4py.py: "))
    assert part in line


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--model", "queued"], "--model queued needs streams of a device"),
        (["--model", "graph", "--memory", "emulated", "--lb-every", 3], "do not move; leave out --lb-every"),
        (["--model", "graph", "--memory", "cuda", "--odf", 25], "streams of at most 24 blocks of a PE"),
    ],
)
def test_mistakes_with_models_are_one_sentence(run_example, arguments: list[object], part: str) -> None:
    done = run_example("stencil2d", "python", 2, *arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert part in line


def test_help_says_what_is_timed(run_example, run_twin) -> None:
    for done in (run_example("stencil2d", "python", 2, "--help"), run_twin(2, "--help")):
        assert done.returncode == 0
        assert "What is timed." in done.stdout
        assert "--scaling" in done.stdout


class TestParts:
    """What can be wrong without anybody seeing it."""

    @pytest.fixture(autouse=True)
    def modules(self, import_miniapp) -> None:
        import_miniapp("stencil2d")

    def test_the_grid_is_cut_where_cuts_are_short(self) -> None:
        from grid import UserError, divide, grown

        assert divide((2048, 2048), 2) == (2, 1), "of equals, the cut between rows"
        assert divide((2048, 2048), 8) == (4, 2)
        assert divide((10, 1000), 4) == (1, 4)
        assert divide((3, 3), 9) == (3, 3)
        with pytest.raises(UserError, match="cannot be cut into 7 blocks"):
            divide((6, 6), 7)
        assert [grown((10, 20), pes) for pes in (1, 2, 4, 6)] == [(10, 20), (20, 20), (20, 40), (20, 60)]

    def test_ranges_cover_every_point_once(self) -> None:
        import numpy as np

        from grid import Problem, range_of

        problem = Problem((7, 11), (3, 4))
        owners = np.zeros(problem.points)
        for index in np.ndindex(problem.blocks):
            (top, left), (rows, columns) = range_of(problem, index).first, range_of(problem, index).size
            owners[top : top + rows, left : left + columns] += 1
        assert (owners == 1).all()

    def test_neighbours_agree(self) -> None:
        import numpy as np

        from grid import Problem, neighbours

        problem = Problem((9, 9), (3, 4))
        for index in np.ndindex(problem.blocks):
            for side, other in neighbours(problem, index).items():
                assert neighbours(problem, other)[side ^ 1] == index

    def test_verification_can_fail(self) -> None:
        import numpy as np

        from verification import difference, solve_serially

        expected = solve_serially((5, 6), 3)
        assert difference(expected.copy(), expected) == ""
        result = expected.copy()
        result[3, 2] = np.nextafter(result[3, 2], 2.0)
        assert difference(result, expected).startswith("1 of 30 values differ")
        assert "(3, 2)" in difference(result, expected)
        assert difference(np.array([[-0.0]]), np.array([[0.0]]))
        assert difference(solve_serially((6, 6), 4), solve_serially((6, 6), 5))
