"""Several jobs under one launch of `weft run`, and programs that are modules."""

from __future__ import annotations

from pathlib import Path

import pytest

JOBS = """\
import sys, weft
class A(weft.Chare):
    def pe(self): return weft.my_pe()
async def main():
    return await weft.Group(A).pe.call()
async def leave():
    weft.exit(3)
results = []
for _ in range(3):
    results.append(weft.run(main))
    try:
        weft.run(leave)
    except SystemExit as exit:
        results.append(exit.code)
print(results, flush=True)
sys.exit(weft.run(main) and int(sys.argv[1]))
"""


def test_jobs_of_one_launch_follow_one_another(run_program) -> None:
    ended = run_program(JOBS, "0", launched=3)
    assert ended.stderr == ""
    lines = sorted(ended.stdout.splitlines())
    assert lines == ["[None, 3, None, 3, None, 3]"] * 2 + ["[[0, 1, 2], 3, [0, 1, 2], 3, [0, 1, 2], 3]"]
    # The codes of jobs before the last one do not count.
    assert ended.returncode == 0


def test_the_exit_code_of_a_process_counts_after_its_last_job(run_program) -> None:
    assert run_program(JOBS, "5", launched=2).returncode == 5


# With an argument, a child of PE 1 outlives it, and holds what it can.
UNEVEN = """\
import os, signal, sys, weft
async def main(): pass
weft.run(main)
if os.environ["WEFT_PE"] == "0":
    weft.run(main)
elif sys.argv[1:] and os.fork() == 0:
    for standard in range(3): os.close(standard)
    signal.alarm(20)
    signal.pause()
"""


@pytest.mark.parametrize("arguments", [[], ["fork"]])
def test_a_job_that_one_pe_alone_starts_ends_the_launch(run_program, arguments: list[str]) -> None:
    ended = run_program(UNEVEN, *arguments, launched=2)
    assert ended.returncode == 1
    assert "PE 0 is in job 2 of this launch, and PE 1 has ended after job 1" in ended.stderr


# The child holds PE 1's connection to the launcher for as long as the launcher lives.
KILLED_BETWEEN_JOBS = """\
import os, select, signal, weft
async def main(): pass
launcher = os.getppid()
weft.run(main)
if os.environ["WEFT_PE"] == "1":
    if os.fork() == 0:
        lives = os.pidfd_open(launcher)
        os.close(1)
        os.close(2)
        select.select([lives], [], [])
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)
weft.run(main)
"""


def test_a_pe_that_is_killed_between_two_jobs_ends_the_launch(run_program) -> None:
    ended = run_program(KILLED_BETWEEN_JOBS, launched=2)
    assert ended.returncode != 0
    assert "was killed by signal 9 (SIGKILL) after it had finished" in ended.stderr
    assert "PE 0 is in job 2 of this launch, and PE 1 has ended after job 1" in ended.stderr


FORKED = """\
import os, sys, weft
async def main(): pass
weft.run(main)
child = os.fork()
if child == 0:
    try:
        weft.run(main)
    except weft.Error as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
weft.run(main)
"""


def test_a_forked_process_is_no_pe_of_the_next_job(run_program) -> None:
    ended = run_program(FORKED, launched=2)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.count("one launch is one Weft job") == 2


def test_a_module_is_a_program(run_python, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "part.py").write_text(
        "import sys, weft\n"
        "class A(weft.Chare):\n    def pe(self): return weft.my_pe()\n"
        "async def main(): print(__name__, sys.argv[1:], await weft.Group(A).pe.call())\n"
        "weft.run(main)\n"
    )
    ended = run_python("-m", "weft", "run", "-n", "2", "-m", "package.part", "-n", "--flag")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "__main__ ['-n', '--flag'] [0, 1]\n"
    ended = run_python("-m", "weft", "run", "-n", "2", "-m")
    assert ended.returncode == 2
    assert ended.stderr == ("weft run: -m takes the name of a Python module, for example -m package.module\n")
