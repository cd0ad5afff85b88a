"""Runs the programs of this folder as jobs, which check themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent / "programs"
TIMEOUT_S = 150

KINDS = ["host", "emulated", pytest.param("cuda", marks=pytest.mark.gpu)]
RunProgram = Callable[..., "subprocess.CompletedProcess[str]"]
Serve = Callable[[Any], str]


@contextmanager
def serving(
    address: str, num_pes: int, program: str, *arguments: str, mapping: str = "on"
) -> Iterator[Serve]:
    """A job that carries out one plan after another: starting it takes longer than a plan.

    Args:
        address: of the socket by which `program`, whose last argument it is, gets its plans. None ends it.

    Yields:
        serve(plan), which returns what the program answers.
    """
    command = ["-m", "weft", "run", "-n", str(num_pes), str(PROGRAMS / program), *arguments, address]
    with Listener(address) as listener:
        job = subprocess.Popen([sys.executable, *command], env={**os.environ, "WEFT_PGAS_MAPPING": mapping})
        try:
            with listener.accept() as connection:

                def carry_out(plan: Any) -> str:
                    connection.send(plan)
                    return str(connection.recv())

                yield carry_out
                connection.send(None)
            assert job.wait(TIMEOUT_S) == 0
        finally:
            job.kill()
            job.wait()


@pytest.fixture
def run_program(need_gpus: Callable[[int], None]) -> RunProgram:
    """run_program(num_pes, program, *arguments): one PE runs without launcher, several under `weft run`.

    `mapping="off"`: operations on other PEs' memory go through the machine. An argument "cuda" needs a GPU,
    unless `gpus` gives the PEs those of a stand-in, which `environment` names.
    """

    def run(
        num_pes: int,
        program: str,
        *arguments: str,
        mapping: str = "on",
        gpus: str | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> subprocess.CompletedProcess[str]:
        if "cuda" in arguments and gpus is None:
            need_gpus(1)
        chosen = [] if gpus is None else ["--gpus", gpus]
        launcher = [] if num_pes == 1 else ["-m", "weft", "run", "-n", str(num_pes), *chosen]
        return subprocess.run(
            [sys.executable, *launcher, str(PROGRAMS / program), *arguments],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            env={**environment, "WEFT_PGAS_MAPPING": mapping},
        )

    return run


@pytest.fixture
def expect_checked(run_program: RunProgram) -> Callable[..., None]:
    """Runs a program that prints "all checked" in the end, and nothing else. Arguments are run_program's."""

    def run(num_pes: int, program: str, *arguments: str, **options: Any) -> None:
        ended = run_program(num_pes, program, *arguments, **options)
        assert (ended.returncode, ended.stdout) == (0, "all checked\n"), ended.stdout + ended.stderr

    return run
