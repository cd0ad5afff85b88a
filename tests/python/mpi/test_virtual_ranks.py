"""`weft run --ranks`: programs with several ranks per process."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from weft.launch import virtual_ranks
from weft.launch.mpi_compiler import package_folder

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests" / "mpi" / "virtual_ranks"
HANG_S = 150
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-O1")

if not (package_folder() / "lib" / virtual_ranks.HOST).exists():
    pytest.skip("THIS BUILD HAS NO VIRTUAL RANKS: Boost.Context was not found", allow_module_level=True)


def expect_refusal(outcome: subprocess.CompletedProcess[str], *parts: str) -> None:
    """One sentence on stderr with these parts, and exit code 2."""
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("weft run: ")
    assert outcome.stderr.count("\n") == 1, outcome.stderr
    for part in parts:
        assert part in outcome.stderr
    assert outcome.returncode == 2


# --- Each rank has a state of its own -----------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("-fPIC",), ("-O2", "-Wl,-z,lazy"), ("-static-libgcc",)])
@pytest.mark.parametrize(("num_pes", "num_ranks"), [(1, 5), (2, 16)])
def test_c_programs_share_nothing(compile_program, run_ranks, options, num_pes, num_ranks):
    program = compile_program("privacy.c", *options)
    words = ["one", "-a", "-cbvalue", "-d", "--long", "name", "-z", "two"]
    outcome = run_ranks(num_pes, num_ranks, program, *words, environment={"SET_FOR_TEST": "1"})
    assert outcome.stderr == ""
    assert sorted(outcome.stdout.splitlines()) == sorted(
        f"rank {rank} of {num_ranks}: 0 failures" for rank in range(num_ranks)
    )
    assert outcome.returncode == 0


@pytest.mark.parametrize("options", [(), ("-fPIC",)])
@pytest.mark.parametrize(("num_pes", "num_ranks"), [(1, 3), (2, 8)])
def test_cpp_programs_share_nothing(compile_program, run_ranks, options, num_pes, num_ranks):
    outcome = run_ranks(num_pes, num_ranks, compile_program("objects.cpp", *options))
    assert outcome.stderr == ""
    expected = [f"rank {rank}: {what}" for rank in range(num_ranks) for what in ("0 failures", "destructor")]
    assert sorted(outcome.stdout.splitlines()) == sorted(expected)
    assert outcome.returncode == 0


@pytest.mark.parametrize(("num_pes", "num_ranks"), [(1, 3), (2, 5), (3, 5)])
def test_wrong_counts_in_a_collective_let_all_ranks_return(compile_program, run_ranks, num_pes, num_ranks):
    program = compile_program("../wrong_counts.c")
    outcome = run_ranks(num_pes, num_ranks, program, "all")
    assert outcome.stderr == ""
    assert outcome.stdout == f"wrong counts on {num_ranks} ranks: all returned\n"
    assert outcome.returncode == 0


@pytest.mark.parametrize(("num_pes", "num_ranks"), [(2, 4), (3, 3)])
def test_an_operator_that_throws_lets_the_ranks_of_all_pes_return(
    compile_program, run_ranks, num_pes, num_ranks
):
    """Those that have not called it get a message without bytes."""
    outcome = run_ranks(num_pes, num_ranks, compile_program("uneven.cpp"), "throws")
    ends = [line.rpartition(" ")[2] for line in outcome.stdout.splitlines()]
    assert len(ends) == num_ranks, outcome.stderr
    assert "intern" in ends
    assert set(ends) <= {"intern", "truncated"}
    assert outcome.returncode == 0


@pytest.mark.parametrize(
    ("what", "error"), [("counts", "truncated"), ("forms", "truncated"), ("throws", "intern")]
)
def test_wrong_reductions_of_ranks_that_work_together_are_errors(compile_program, run_ranks, what, error):
    """They touch no memory beyond a rank's own, and no rank waits for ever."""
    outcome = run_ranks(1, 4, compile_program("uneven.cpp"), what)
    assert sorted(outcome.stdout.splitlines()) == [f"rank {rank}: {error}" for rank in range(4)], (
        outcome.stderr
    )
    assert outcome.returncode == 0


def test_256_ranks_in_one_process(compile_program, run_ranks):
    outcome = run_ranks(1, 256, compile_program("objects.cpp"))
    assert outcome.stderr == ""
    assert outcome.stdout.count(": 0 failures") == 256
    assert outcome.returncode == 0


# --- How copies are loaded ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [(), ("-fPIC",), ("-O2",), ("-Wl,-z,now",), ("-Wl,-z,noseparate-code",), ("-static-libgcc",)],
)
def test_the_loader_fills_in_all_references(compile_program, run_ranks, options):
    outcome = run_ranks(2, 8, compile_program("loading.cpp", *options))
    assert outcome.stderr == ""
    assert sorted(outcome.stdout.splitlines()) == [f"rank {rank}: 0 failures" for rank in range(8)]
    assert outcome.returncode == 0


def test_packed_relocations(compile_program, run_ranks):
    linker_help = subprocess.run(["ld", "--help"], capture_output=True, text=True, check=True).stdout
    if "pack-relative-relocs" not in linker_help:
        pytest.skip("THE LINKER HAS NO PACKED RELOCATIONS (-z pack-relative-relocs)")
    outcome = run_ranks(1, 3, compile_program("loading.cpp", "-Wl,-z,pack-relative-relocs"))
    assert outcome.stderr == ""
    assert outcome.stdout.count(": 0 failures") == 3


def test_a_rank_has_the_same_addresses_in_each_run(compile_program, run_ranks):
    program = compile_program("loading.cpp")
    runs = [run_ranks(num_pes, 4, program, "addresses").stdout for num_pes in (1, 2, 3)]
    addresses = [sorted(re.findall(r"^rank \d at .*$", run, re.MULTILINE)) for run in runs]
    assert len(addresses[0]) == 4
    assert addresses[0] == addresses[1] == addresses[2]


@pytest.mark.parametrize("options", [(), ("-fPIC",), ("-O2", "-D_FORTIFY_SOURCE=2")])
@pytest.mark.parametrize(("num_pes", "num_ranks"), [(1, 3), (2, 8)])
def test_memory_lies_in_the_slots_of_the_ranks(compile_program, run_ranks, options, num_pes, num_ranks):
    outcome = run_ranks(num_pes, num_ranks, compile_program("memory.cpp", *options))
    assert outcome.stderr == ""
    assert sorted(outcome.stdout.splitlines()) == [f"rank {rank}: 0 failures" for rank in range(num_ranks)]
    assert outcome.returncode == 0


def test_a_stack_that_does_not_fit_into_a_slot(compile_program, run_ranks):
    program = compile_program("places.c")
    outcome = run_ranks(1, 512, program, options=["--stack-size", 32 << 20])  # 32 of 32 GiB
    assert outcome.returncode == 2
    assert (
        "a stack of 33554432 KiB do not fit into the 32768 MiB that each of 512 ranks has" in outcome.stderr
    )


def test_reserved_addresses(compile_program, run_ranks):
    program = compile_program("loading.cpp")
    command = f"ulimit -v 40000000 && {sys.executable} -m weft run -n 1 --ranks 2 {program}"
    outcome = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert outcome.returncode != 0
    assert "GiB of addresses" in outcome.stderr
    assert "ulimit -v unlimited" in outcome.stderr


# --- Where ranks are ----------------------------------------------------------------------------------------


def places(outcome: subprocess.CompletedProcess[str]) -> list[int]:
    """The PE of each rank."""
    assert outcome.stderr == ""
    assert outcome.returncode == 0
    found = re.findall(r"^rank (\d+) of \d+ on PE (\d+) of ", outcome.stdout, re.MULTILINE)
    return [int(pe) for _, pe in sorted((int(rank), pe) for rank, pe in found)]


def test_maps(compile_program, run_ranks, tmp_path):
    program = compile_program("places.c")
    assert places(run_ranks(2, 5, program)) == [0, 0, 0, 1, 1]
    assert places(run_ranks(2, 5, program, options=["--rank-map", "round-robin"])) == [0, 1, 0, 1, 0]
    (tmp_path / "map").write_text("1\n0 # the second\n\n0\n1\n")
    assert places(run_ranks(2, 4, program, options=["--rank-map", "map"])) == [1, 0, 0, 1]
    # As many ranks as PEs, in another order.
    (tmp_path / "map").write_text("1\n0\n")
    assert places(run_ranks(2, 2, program, options=["--rank-map", "map"])) == [1, 0]


def test_variables_do_as_the_options(compile_program, run_ranks):
    environment = {"WEFT_MPI_RANKS": "4", "WEFT_MPI_RANK_MAP": "round-robin"}
    outcome = run_ranks(2, None, compile_program("places.c"), environment=environment)
    assert places(outcome) == [0, 1, 0, 1]


def test_the_program_has_its_own_name(compile_program, run_ranks):
    program = compile_program("places.c")
    assert f"of {program}\n" in run_ranks(1, 2, program).stdout


def test_stacks_have_the_size_that_is_asked_for(compile_program, run_ranks):
    program = compile_program("places.c")
    assert places(run_ranks(1, 3, program, 700)) == [0, 0, 0]
    assert places(run_ranks(1, 3, program, 6000, options=["--stack-size", 8192])) == [0, 0, 0]
    overflow = run_ranks(1, 3, program, 6000)
    assert overflow.returncode == 128 + 11
    assert "SIGSEGV" in overflow.stderr
    assert re.search(r"MPI rank \d has used up its stack of 1024 KiB; give ranks more with", overflow.stderr)


def test_a_crash_names_the_rank(compile_program, run_ranks):
    outcome = run_ranks(1, 3, compile_program("crash.c"))
    assert outcome.returncode == 128 + 11
    assert "weft: PE 0: MPI rank 2 ends by SIGSEGV" in outcome.stderr
    # Its variables are larger than the stack, and than the program below it.
    outcome = run_ranks(1, 3, compile_program("crash.c"), "large")
    assert outcome.returncode == 128 + 11
    assert "weft: PE 0: MPI rank 2 has used up its stack of 1024 KiB" in outcome.stderr


def test_the_environment_is_the_programs(compile_program, run_ranks):
    program = compile_program("environment.c")
    outcome = run_ranks(1, 2, program, "first", "second")
    assert outcome.stdout.splitlines() == [f"{program} first second"] * 2


# --- Threads of OpenMP --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "num_pes", "num_ranks"),
    [("outside", 1, 3), ("outside", 2, 6), ("one", 1, 3), ("one", 2, 6), ("inside", 2, 2)],
)
def test_parallel_regions(compile_program, run_ranks, where, num_pes, num_ranks):
    """A rank that waits in a region of one thread finds its loop again. A rank alone waits in any region."""
    outcome = run_ranks(num_pes, num_ranks, compile_program("parallel_region.c", "-fopenmp"), where)
    assert outcome.stderr == ""
    assert sorted(outcome.stdout.splitlines()) == [f"rank {rank}: 0 failures" for rank in range(num_ranks)]
    assert outcome.returncode == 0


def test_a_wait_inside_a_region_of_several_threads(compile_program, run_ranks):
    outcome = run_ranks(1, 3, compile_program("parallel_region.c", "-fopenmp"), "inside")
    assert outcome.returncode == 1
    assert re.search(
        r"rank \d waits in MPI inside an OpenMP region of several threads\. .* set OMP_NUM_THREADS=1, or",
        outcome.stderr,
    )


def test_another_thread_of_a_region_that_waits_in_mpi(compile_program, run_ranks):
    outcome = run_ranks(1, 3, compile_program("parallel_region.c", "-fopenmp"), "another")
    assert outcome.returncode == 1
    assert re.search(
        r"another thread than that of rank \d waits in MPI\. .* the master alone calls MPI", outcome.stderr
    )


# --- What cannot have virtual ranks -------------------------------------------------------------------------


def test_thread_local_variables(compile_program, run_ranks):
    program = compile_program("thread_local.c")
    expect_refusal(run_ranks(1, 2, program), f"{program}: has thread-local variables", "one PE per rank (-n)")
    assert run_ranks(2, 2, program).returncode == 0


def test_fixed_addresses(compile_program, run_ranks):
    outcome = run_ranks(1, 2, compile_program("places.c", "-no-pie"))
    expect_refusal(outcome, "has fixed addresses", "-fPIE -pie")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shared library with variables."""
    path = tmp_path_factory.mktemp("library") / "libstate.so.1"
    command = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{path.name}", str(PROGRAMS / "library.c")]
    subprocess.run([*command, "-o", str(path)], check=True, timeout=HANG_S)
    return path


def link(library: Path) -> list[str]:
    return [str(library), f"-Wl,-rpath,{library.parent}"]


def test_a_library_with_variables(compile_program, run_ranks, library):
    program = compile_program("with_library.c", *link(library))
    outcome = run_ranks(1, 3, program)
    expect_refusal(outcome, "libstate.so.1 has variables (", "library_variable", "--share-library libstate;")
    for name in ("libstate", "libother,libstate.so.1"):
        shared = run_ranks(1, 3, program, options=["--share-library", name])
        assert shared.stderr == ""
        assert shared.stdout == "calls: 6\n"


def test_a_stripped_library_may_have_variables(compile_program, run_ranks, library, tmp_path):
    stripped = tmp_path / library.name
    subprocess.run(["strip", "-o", stripped, library], check=True, timeout=HANG_S)
    program = compile_program("with_library.c", *link(stripped))
    expect_refusal(run_ranks(1, 3, program), "libstate.so.1 may have variables")


def test_a_copy_of_a_librarys_variable(compile_program, run_ranks, library):
    program = compile_program("with_library.c", "-DUSES_VARIABLE", *link(library))
    outcome = run_ranks(1, 2, program, options=["--share-library", "libstate"])
    expect_refusal(outcome, "has a copy of the variable library_variable", "-fPIC")
    refers = compile_program("with_library.c", "-DUSES_VARIABLE", "-fPIC", *link(library))
    assert run_ranks(1, 2, refers, options=["--share-library", "libstate"]).returncode == 0


def test_the_mpi_library_of_another_installation(compile_program, run_ranks, tmp_path):
    """A program may be linked with it. The ranks then use that which runs them, and not two in a process."""
    other = tmp_path / "weft" / "mpi" / "lib"
    shutil.copytree(package_folder() / "lib", other, symlinks=True)
    ucx = package_folder().parents[1] / "libucx"  # where an installed library looks for it
    if ucx.exists():
        (tmp_path / "libucx").symlink_to(ucx)
    program = compile_program("places.c", f"-Wl,-rpath,{other}", "-Wl,--disable-new-dtags")
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert f"libmpi_abi.so.1 => {other}/" in linked, linked
    assert places(run_ranks(2, 4, program)) == [0, 0, 1, 1]


def test_a_library_in_a_folder_beside_the_program(compile_program, run_ranks, library, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / library.name).write_bytes(library.read_bytes())
    compiled = compile_program("with_library.c", str(library), "-Wl,-rpath,$ORIGIN/lib")
    program = tmp_path / "program"
    program.write_bytes(compiled.read_bytes())
    program.chmod(0o755)
    outcome = run_ranks(1, 2, "./program", options=["--share-library", "libstate"])
    assert outcome.stderr == ""
    assert outcome.stdout == "calls: 3\n"
    (tmp_path / "lib" / library.name).unlink()
    expect_refusal(run_ranks(1, 2, "./program", options=["--share-library", "libstate"]), library.name)


# --- Libraries that a program loads while it runs -----------------------------------------------------------


@pytest.mark.parametrize(("num_pes", "num_ranks"), [(1, 3), (2, 4)])
@pytest.mark.parametrize("is_stripped", [False, True])
def test_each_rank_has_a_library_that_it_loads_for_itself(
    compile_program, run_ranks, library, tmp_path, num_pes, num_ranks, is_stripped
):
    """The loader finds it by the program's RUNPATH."""
    folder = library.parent
    if is_stripped:
        folder = tmp_path
        subprocess.run(["strip", "-o", tmp_path / library.name, library], check=True, timeout=HANG_S)
    program = compile_program("loads_library.c", "-ldl", f"-Wl,-rpath,{folder}")
    outcome = run_ranks(num_pes, num_ranks, program, library.name)
    assert outcome.stderr == ""
    assert sorted(outcome.stdout.splitlines()) == [f"rank {rank}: own variables" for rank in range(num_ranks)]
    assert outcome.returncode == 0


def test_a_library_by_its_path(compile_program, run_ranks, library):
    outcome = run_ranks(1, 2, compile_program("loads_library.c", "-ldl"), library)
    assert sorted(outcome.stdout.splitlines()) == [f"rank {rank}: own variables" for rank in range(2)]


def test_libraries_that_may_be_shared_are_loaded_once(compile_program, run_ranks, library):
    program = compile_program("loads_library.c", "-ldl", f"-Wl,-rpath,{library.parent}")
    outcome = run_ranks(1, 2, program, library.name, options=["--share-library", "libstate"])
    expected = [f"rank {rank}: variables of another rank" for rank in range(2)]
    assert sorted(outcome.stdout.splitlines()) == expected


def test_a_library_that_does_not_exist(compile_program, run_ranks):
    outcome = run_ranks(1, 2, compile_program("loads_library.c", "-ldl"), "libnone-of-these.so")
    assert sorted(outcome.stdout.splitlines()) == [
        f"rank {rank}: libnone-of-these.so: cannot open shared object file" for rank in range(2)
    ]


def test_a_library_that_needs_one_with_variables(compile_program, run_ranks, library, tmp_path):
    needs = tmp_path / "libneeds.so"
    source = tmp_path / "needs.c"
    source.write_text("extern int library_call(void);\nint other_call(void) { return library_call(); }\n")
    command = ["cc", "-shared", "-fPIC", source, *link(library), "-o", needs]
    subprocess.run([str(word) for word in command], check=True, timeout=HANG_S)
    program = compile_program("loads_library.c", "-ldl")
    outcome = run_ranks(1, 2, program, needs)
    for rank in range(2):
        assert f"rank {rank}: {needs}: its library {library.name} has variables (" in outcome.stdout
    assert "--share-library libstate" in outcome.stdout
    shared = run_ranks(1, 2, program, needs, options=["--share-library", "libstate"])
    assert "rank 0: variables of another rank" in shared.stdout


def test_a_rank_with_a_library_of_its_own_does_not_move(compile_program, run_ranks, library):
    program = compile_program("loads_library.c", "-ldl", "-DMOVES", f"-Wl,-rpath,{library.parent}")
    outcome = run_ranks(2, 4, program, library.name)
    reason = "rank 0 cannot move: it has libraries with variables from dlopen() (1); call dlclose() before"
    assert reason in outcome.stderr
    lines = [f"rank {rank}: own variables" for rank in range(4)]
    assert sorted(outcome.stdout.splitlines()) == sorted([*lines, *lines])
    assert outcome.returncode == 0


def test_programs_of_python(run_ranks, tmp_path):
    (tmp_path / "app.py").write_text("print('runs ')\n")
    expect_refusal(run_ranks(2, 16, "app.py"), "one rank per process", "weft run -n 16 app.py")
    assert run_ranks(2, 2, "app.py").stdout.split() == ["runs", "runs"]


def test_what_is_no_program_of_mpi(run_ranks, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    expect_refusal(run_ranks(1, 2, "./script"), "./script: is a script")
    expect_refusal(run_ranks(1, 2, "/bin/ls"), "/bin/ls: does not use MPI", "weft mpicc")


# --- Wrong settings -----------------------------------------------------------------------------------------


def test_numbers_of_ranks(compile_program, run_ranks):
    program = compile_program("places.c")
    expect_refusal(run_ranks(2, "many", program), "--ranks takes the number of MPI ranks", "'many'")
    expect_refusal(run_ranks(2, 1, program), "--ranks 1: each of the 2 PEs has at least one rank")
    expect_refusal(run_ranks(2, 1 << 21, program), "at most 1048576 ranks")


def test_settings(compile_program, run_ranks, tmp_path):
    program = compile_program("places.c")
    (tmp_path / "map").write_text("0\n2\n0\n")
    for options, part in [
        (["--rank-map", "map"], "map:2: '2' is no PE of this job; give a number from 0 to 1"),
        (["--rank-map", "none"], "--rank-map none: the file cannot be read"),
        (["--stack-size", "big"], "WEFT_MPI_STACK_KIB='big': give a number from 64"),
        (["--stack-size", "1"], "WEFT_MPI_STACK_KIB='1'"),
    ]:
        expect_refusal(run_ranks(2, 3, program, options=options), part)
    expect_refusal(run_ranks(2, None, program, options=["--stack-size", 1024]), "give it with --ranks N")


def test_a_build_without_virtual_ranks_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(virtual_ranks, "package_folder", lambda: tmp_path)
    with pytest.raises(virtual_ranks.UsageError, match=r"(?s)built without virtual ranks.*Boost\.Context"):
        virtual_ranks.with_virtual_ranks([["./program"]], {"WEFT_MPI_RANKS": "2"})


# --- Programs of the other tests ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "collectives",
        "collective_sizes",
        "create_groups",
        "messages",
        "objects",
        "sentinels",
        "small_forms",
        "topologies",
    ],
)
@pytest.mark.parametrize(("num_pes", "num_ranks"), [(1, 4), (2, 5), (3, 7)])
def test_programs_of_one_rank_per_process_run_as_they_are(mpi_program, run_ranks, name, num_pes, num_ranks):
    program = mpi_program(name)
    for rank_map in ("block", "round-robin"):
        outcome = run_ranks(num_pes, num_ranks, program, options=["--rank-map", rank_map])
        assert outcome.returncode == 0, outcome.stderr
        assert f"{num_ranks} ranks: as expected" in outcome.stdout


def test_a_flood_of_messages_to_a_rank_of_the_same_process(mpi_program, run_ranks):
    outcome = run_ranks(1, 2, mpi_program("flood"))
    assert outcome.returncode == 0, outcome.stderr
    assert "the receiver grew by less than 400 MiB" in outcome.stdout
