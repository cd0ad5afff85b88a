"""charmrun's command line, and how a program gets Weft's package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weft._cli.charmrun import ON_PATH, command

PROGRAM = r"""
import charm4py, os, sys
sys.stdout.write(f"{charm4py.__name__} {sys.argv[1:]} {os.getppid()}\n")
charm4py.charm.start(lambda args: exit(4))
"""


@pytest.mark.parametrize(
    "words, expected",
    [
        ("+p4 app.py 8 --x", "-n 4 app.py 8 --x"),
        ("app.py +p2 ++local +balancer GreedyRefineLB +LBDebug 1", "-n 2 --lb greedy_refine app.py"),
        ("++interactive +p3", "-n 3 -m charm4py.interactive"),
        ("-np 2 app.py -n 5", "-n 2 app.py -n 5"),
    ],
)
def test_command_line(words, expected):
    assert command(words.split()) == ["run", "--charm4py", *expected.split()]


@pytest.mark.parametrize(
    "words, named",
    [
        ("+balancer MyLB app.py", "MyLB"),
        ("++mpiexec app.py", "mpiexec"),
        ("app.py +p", r"\+p needs a word"),
        ("app.py +balancer", r"\+balancer needs a word"),
        ("app.py ++nodelist", r"\+\+nodelist needs a word"),
        ("-n x app.py", "-n needs a number of PEs, not x"),
        ("-np -2 app.py", "-np needs a number of PEs, not -2"),
    ],
)
def test_what_cannot_be_followed_is_named(words, named):
    with pytest.raises(ValueError, match=named):
        command(words.split())


def test_charmrun_becomes_the_launcher_of_the_program(tmp_path: Path):
    (tmp_path / "app.py").write_text(PROGRAM, encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(ON_PATH), os.environ.get("PYTHONPATH")]))
    with subprocess.Popen(
        [sys.executable, "-m", "charmrun.start", "+p2", str(tmp_path / "app.py"), "a"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as charmrun:
        output, errors = charmrun.communicate(timeout=60)
    assert charmrun.returncode == 4, errors
    assert output.splitlines() == [f"weft.charm4py ['a'] {charmrun.pid}"] * 2


def test_prompt_runs_definitions_on_all_pes(run_program):
    lines = "class A(Chare):\n    def pe(self):\n        return charm.myPe()\n\n"
    lines += "print(Group(A).pe(ret=True).get())\n"
    lines += "def double(x):\n    return 2 * x\n\n"
    lines += "print(charm.pool.map(double, [2, 3]))\n"
    done = subprocess.run(
        [sys.executable, "-m", "weft", "run", "--charm4py", "-n", "2", "-m", "charm4py.interactive"],
        input=lines,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "[0, 1]" in done.stdout and "[4, 6]" in done.stdout
