"""Programs that are written for charm4py, on Weft."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("name, word", [("calls", "word"), ("collectives", ""), ("mistakes", "")])
def test_programs(run_program, name, word):
    done = run_program(name, *filter(None, [word]))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{name} passed\n"


def test_ordered_calls_run_in_the_order_of_sending(run_program):
    done = run_program("order")
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_chares_move_at_sync_points(run_program):
    done = run_program("balance", WEFT_LB="rotate")
    assert done.returncode == 3, done.stderr
    assert "moves: 7" in done.stdout
