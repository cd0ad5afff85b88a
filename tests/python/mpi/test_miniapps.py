"""The mini-apps in plain C and MPI, with one and with several ranks per PE."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from weft.launch import virtual_ranks
from weft.launch.mpi_compiler import package_folder

FOLDER = Path(__file__).resolve().parents[3] / "miniapps" / "mpi"
HANG_S = 150

HAS_VIRTUAL_RANKS = (package_folder() / "lib" / virtual_ranks.HOST).exists()
WAYS = [["-n", "2"], ["-n", "2", "--ranks", "16"], ["-n", "1", "--ranks", "7"]]


@pytest.fixture(scope="session")
def miniapps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the compiled programs."""
    folder = tmp_path_factory.mktemp("miniapps")
    for source in FOLDER.glob("*.c"):
        command = [sys.executable, "-m", "weft", "mpicc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1"]
        words = [*command, str(source), "-o", str(folder / source.stem), "-lm"]
        subprocess.run(words, check=True, timeout=HANG_S)
    return folder


def run(words: list[str], program: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    if "--ranks" in words and not HAS_VIRTUAL_RANKS:
        pytest.skip("THIS BUILD HAS NO VIRTUAL RANKS: Boost.Context was not found")
    command = [sys.executable, "-m", "weft", "run", *words, str(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)


@pytest.mark.parametrize("words", WAYS)
def test_jacobi3d_computes_the_same_with_any_number_of_ranks(miniapps: Path, words: list[str]) -> None:
    changes = []
    for options in (["-n", "1"], words):
        done = run(options, miniapps / "jacobi3d", 19, 12)
        assert done.returncode == 0, done.stderr
        assert re.match(rf"{options[-1]} ranks: ", done.stdout)
        changes.append(done.stdout.rpartition(" ")[2])
    assert changes[0] == changes[1]


def test_jacobi3d_says_what_cannot_be(miniapps: Path) -> None:
    done = run(["-n", "1", "--ranks", "8"], miniapps / "jacobi3d", 1)
    assert done.returncode != 0
    assert "8 ranks are too many for 1 points" in done.stderr


@pytest.mark.parametrize(
    "words", [["-n", "1"], *WAYS, ["-n", "2", "--ranks", "9", "--rank-map", "round-robin"]]
)
@pytest.mark.parametrize("moves", [(), (1, -2), (0, 0, 1.0)])
@pytest.mark.parametrize("lb", ["none", "greedy_refine", "rotate"])
def test_pic_puts_every_particle_where_it_must_be(
    miniapps: Path, words: list[str], lb: str, moves: tuple[float, ...]
) -> None:
    done = run([*words, "--lb", lb], miniapps / "pic", 98, 5000, 40, 7, *moves)
    assert done.returncode == 0, done.stderr
    assert "of 5000 particles in the fullest strip, all where they must be" in done.stdout


def test_pic_is_imbalanced(miniapps: Path) -> None:
    done = run(["-n", "2"], miniapps / "pic", 998, 60100, 2)
    fullest = re.search(r"(\d+) of 60100 particles", done.stdout)
    assert fullest is not None
    assert int(fullest[1]) > 0.9 * 60100


def test_pic_says_what_cannot_be(miniapps: Path) -> None:
    odd = run(["-n", "1"], miniapps / "pic", 97)
    assert odd.returncode != 0
    assert "with an even SIZE" in odd.stderr
    narrow = run(["-n", "2"], miniapps / "pic", 98, 100, 1, 0, 30)
    assert narrow.returncode != 0
    assert "a strip is narrower than a step" in narrow.stderr
