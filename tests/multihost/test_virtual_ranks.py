"""Several MPI ranks per process on two hosts, under every launcher: `weft ranks`."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import launchers
import pytest

from weft.launch import virtual_ranks
from weft.launch.mpi_compiler import package_folder

PROGRAMS = Path(__file__).resolve().parents[1] / "mpi" / "virtual_ranks"
WEFT = [sys.executable, "-m", "weft"]

if not (package_folder() / "lib" / virtual_ranks.HOST).exists():
    pytest.skip("THIS BUILD HAS NO VIRTUAL RANKS: Boost.Context was not found", allow_module_level=True)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """compiled("places.c"): the program of tests/mpi/virtual_ranks."""
    folder = tmp_path_factory.mktemp("virtual_ranks")

    def compile_once(source: str) -> Path:
        program = folder / Path(source).stem
        if not program.exists():
            subprocess.run(
                [*WEFT, "mpicc", "-std=gnu99", PROGRAMS / source, "-o", program], check=True, timeout=60
            )
        return program

    return compile_once


def test_ranks_move_between_the_hosts(launched, compiled) -> None:
    """They also exchange messages with those of their process, of their host and of the other one."""
    cluster, launch = launched
    outcome = cluster.hosts[0].run(launch(2, [*WEFT, "ranks", 12, compiled("moves.c")]))
    assert outcome.exit_code == 0, outcome.stderr
    lines = [line for line in outcome.stdout.splitlines() if line.startswith("rank ")]
    assert sorted(lines) == sorted(f"rank {rank}: 0 failures" for rank in range(12))


def test_entries_that_a_launcher_adds_to_the_library_path_do_not_hinder_moves(launched, compiled) -> None:
    """Hundreds of them on one host, so that its loader maps a page more; PRRTE adds one or two."""
    cluster, launch = launched
    add = 'test "$(hostname)" = nodeA || export LD_LIBRARY_PATH="$LD_LIBRARY_PATH$(printf %0600d 0 | tr 0 :)"'
    command = f"{add}; exec {shlex.join(WEFT)} ranks 6 {compiled('moves.c')}"
    outcome = cluster.hosts[0].run(launch(1, ["sh", "-c", command]))
    assert outcome.exit_code == 0, outcome.stderr
    assert {f"rank {rank}: 0 failures" for rank in range(6)} <= set(outcome.stdout.splitlines())


def test_a_map_and_a_size_of_stacks(launched, compiled, tmp_path: Path) -> None:
    cluster, launch = launched
    rank_map = tmp_path / "map"
    rank_map.write_text("1\n0\n1\n")
    words = [*WEFT, "ranks", 3, "--rank-map", rank_map, "--stack-size", 128, compiled("places.c")]
    outcome = cluster.hosts[0].run(launch(1, words))
    assert outcome.exit_code == 0, outcome.stderr
    assert sorted(re.findall(r"rank (\d).* PE (\d)", outcome.stdout)) == [("0", "1"), ("1", "0"), ("2", "1")]


def test_ranks_that_never_start_mpi_end_well(launched, compiled) -> None:
    cluster, launch = launched
    outcome = cluster.hosts[0].run(launch(1, [*WEFT, "ranks", 4, compiled("ending.c"), "no-init"]))
    assert outcome.exit_code == 0, outcome.stderr
    ends = ["rank 0: destructor", "rank 0: first handler", "rank 0: second handler"]
    assert sorted(outcome.stdout.splitlines()) == sorted(4 * ends)  # lines of two processes may mix


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["ranks", "8", "thread_local.c"], "has thread-local variables"),
        (["ranks", "1", "places.c"], "--ranks 1: 2 PEs have from 2 to"),
    ],
)
def test_what_cannot_be_is_refused_once(launched, compiled, tmp_path: Path, words, sentence: str) -> None:
    cluster, launch = launched
    errors = tmp_path / "errors"
    command = launchers.with_errors_in(errors, [*WEFT, *words[:-1], compiled(words[-1])])
    outcome = cluster.hosts[0].run(launch(1, command))
    assert outcome.exit_code != 0
    assert errors.read_text().count(sentence) == 1, errors.read_text()


# `weft run` starts ranks by that variable.
@pytest.mark.parametrize("launched", ["prrte", "hydra", "slurm-pmix", "slurm-pmi2"], indirect=True)
def test_ranks_for_a_program_that_was_started_as_it_is(launched, compiled, tmp_path: Path) -> None:
    cluster, launch = launched
    errors = tmp_path / "errors"
    command = launchers.with_errors_in(errors, [compiled("places.c")])
    outcome = cluster.hosts[0].run(launch(1, command, environment={"WEFT_MPI_RANKS": "8"}))
    assert outcome.exit_code != 0
    assert "WEFT_MPI_RANKS is '8', and the 2 processes of this job have one rank each" in errors.read_text()
