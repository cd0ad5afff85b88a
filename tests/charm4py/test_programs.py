"""Programs that are written for charm4py, on Weft."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/charm4py.md"


@pytest.mark.parametrize("name", ["calls", "collectives", "mistakes", "remote"])
def test_programs(run_program, name):
    done = run_program(name, "word")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{name} passed\n"


@pytest.mark.parametrize("mode", ["kept", "kept_group", "kept_single", "dropped"])
def test_an_exception_in_a_constructor_that_nothing_awaits_ends_the_job(run_program, mode):
    ended = run_program("constructors", mode)
    assert ended.returncode == 1, ended.stderr
    for word in ("ValueError: no chare here", "in the constructor of", "on PE 1"):
        assert word in ended.stderr, ended.stderr


def test_an_exception_in_a_constructor_is_raised_by_awaitCreation(run_program):
    ended = run_program("constructors", "awaited")
    assert (ended.returncode, ended.stdout) == (0, "awaited passed\n"), ended.stderr


def test_device_memory_by_address(run_program, stand_in_cuda):
    ended = run_program("addresses", **stand_in_cuda)
    assert (ended.returncode, ended.stdout) == (0, "addresses passed\n"), ended.stderr


@pytest.mark.gpu
def test_device_memory_of_a_gpu_by_address(run_program, need_gpus):
    need_gpus(1)
    ended = run_program("addresses")
    assert (ended.returncode, ended.stdout) == (0, "addresses passed\n"), ended.stderr


def test_ordered_calls_run_in_the_order_of_sending(run_program):
    done = run_program("order")
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_chares_move_at_sync_points(run_program):
    done = run_program("balance", WEFT_LB="rotate")
    assert done.returncode == 3, done.stderr
    assert "moves: 7" in done.stdout


def test_program_of_the_page(tmp_path: Path):
    found = re.search(r"```python\n(.*?)```.*?```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    (tmp_path / "app.py").write_text(found[1], encoding="utf-8")
    command = [sys.executable, "-m", "weft", "run", "-n", "2", str(tmp_path / "app.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, found[2]), done.stderr


def test_without_greenlet_the_extra_is_named():
    code = "import sys; sys.modules['greenlet'] = None; import weft.charm4py"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'weft[charm4py]'" in done.stderr
