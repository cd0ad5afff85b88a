"""The tool information interface (MPI_T_...)."""

from __future__ import annotations

import re

import pytest

from weft._cli.settings import SETTINGS

# The launcher alone needs them: how it lays out the ranks of a process.
OF_THE_LAUNCHER = {"WEFT_MPI_STACK_KIB", "WEFT_MPI_SHARE_LIBRARIES"}


@pytest.mark.parametrize("num_pes", [None, 2])
def test_a_tool_reads_settings_and_counts(run_mpi, num_pes):
    done = run_mpi("tools/information", num_pes)
    assert (done.stdout, done.stderr) == (f"tool information of {num_pes or 1} ranks: as expected\n", "")
    assert done.returncode == 0


def test_each_option_of_the_launcher_is_a_control_variable(run_mpi):
    done = run_mpi("tools/information", None, "list")
    options = {setting.variable for setting in SETTINGS} - OF_THE_LAUNCHER
    assert options <= set(done.stdout.split())
    assert done.returncode == 0


def test_ranks_move_when_their_tools_are_closed(compile_program, run_ranks):
    done = run_ranks(2, 4, compile_program("open_tools.c", "-fPIC"))
    start = "weft: Weft_migrate: rank 0 cannot move: "
    tool = "a tool uses the interface MPI_T; call MPI_T_finalize before"
    # How many requests there are depends on how far the ends of the partitioned messages are.
    requests = r"it has requests of MPI \(\d+\); complete and free them before"
    assert re.fullmatch(f"({start}{tool}\n{start}{requests}\n){{3}}", done.stderr)
    assert (done.stdout, done.returncode) == ("4 ranks moved\n", 0)
