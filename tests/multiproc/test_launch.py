"""`weft run`: jobs that go well."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from weft._cli.settings import SETTINGS
from weft.launch.mpi.other_mpi import is_of_mpi4py, mapped_library, named_library

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (".cpp", ".h", ".py")


@pytest.mark.parametrize("num_pes", [1, 2, 4, 9])
def test_all_pes_join_and_exchange(run, probe: Path, num_pes: int) -> None:
    outcome = run("-n", num_pes, probe, 20)
    assert outcome.stderr == ""
    assert outcome.exit_code == 0
    expected = [f"local {pe} of {num_pes}, local {pe} of {num_pes}" for pe in range(num_pes)]
    assert sorted(outcome.stdout.splitlines()) == expected


def test_a_plain_binary_is_one_pe(start_command, probe: Path) -> None:
    outcome = start_command([str(probe), "3"]).wait()
    assert (outcome.stdout, outcome.exit_code) == ("singleton 0 of 1, local 0 of 1\n", 0)


def test_a_python_program_runs_with_this_python_and_its_arguments(run, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        "sys.stdout.write(f\"{sys.executable} {sys.argv[1:]} {os.environ['WEFT_NUM_PES']}\\n\")"
    )
    outcome = run("-n", 2, program, "-n", "7", "--help", "--", "two words", "")
    assert outcome.stdout == f"{sys.executable} ['-n', '7', '--help', '--', 'two words', ''] 2\n" * 2
    assert outcome.exit_code == 0


def test_np_is_n(run) -> None:
    outcome = run("-np", 2, "--", "echo", "-np", "hello")
    assert (outcome.stdout, outcome.exit_code) == ("-np hello\n" * 2, 0)


def test_a_program_on_the_path_that_knows_nothing_of_weft(run) -> None:
    outcome = run("-n", 3, "--", "echo", "hello")
    assert (outcome.stdout, outcome.stderr, outcome.exit_code) == ("hello\n" * 3, "", 0)


def test_a_job_of_two_programs(run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import os, sys\n"
        "pe, program = os.environ['WEFT_PE'], os.environ.get('WEFT_PROGRAM')\n"
        "sys.stdout.write(f'{pe} {program} {sys.argv[1:]}\\n')\n"
    )
    program = tmp_path / "program.py"
    outcome = run("-n", 1, program, "one", ":", "-np", 2, program, ":", "two", ":", "-n", 1, program, "one")
    assert outcome.stderr == ""
    assert sorted(outcome.stdout.splitlines()) == [
        "0 0 ['one']",
        "1 1 [':', 'two']",
        "2 1 [':', 'two']",
        "3 2 ['one']",
    ]
    outcome = run("-n", 1, program, ":", "-n", 1, program)
    assert sorted(outcome.stdout.splitlines()) == ["0 0 []", "1 1 []"]
    assert run("-n", 1, program, ":").stdout == "0 None [':']\n"


def test_two_programs_join_one_job(run, probe: Path) -> None:
    outcome = run("-n", 1, probe, 20, ":", "-n", 2, "sh", "-c", '"$0" 20; exit $?', probe)
    assert outcome.stderr == ""
    assert sorted(outcome.stdout.splitlines()) == [f"local {pe} of 3, local {pe} of 3" for pe in range(3)]


def test_a_program_of_another_mpi_is_named(run, tmp_path: Path) -> None:
    """Its processes would each be rank 0 of 1, without an error."""
    (tmp_path / "other.c").write_text("int initialize(void) { return 0; }")
    (tmp_path / "program.c").write_text("int initialize(void); int main(void) { return initialize(); }")
    for command in (
        "cc -shared -fPIC -Wl,-soname,libmpi.so.40 other.c -o libmpi.so.40",
        "cc program.c ./libmpi.so.40 -Wl,-rpath,$ORIGIN -o program",
    ):
        subprocess.run(command.split(), cwd=tmp_path, check=True, timeout=60)
    program = str(tmp_path / "program")
    outcome = run("-n", 2, program)
    assert outcome.exit_code == 0
    assert outcome.stderr.startswith(f"weft run: {program} names libmpi.so.40, another MPI")
    assert outcome.stderr.count("\n") == 1
    assert run("-n", 1, program).stderr == ""


@pytest.mark.parametrize("script", [(), ("sh", "-c", '"$0" "$@"; exit $?', sys.executable)])
def test_another_mpi_is_named_while_the_program_runs(start, tmp_path: Path, script: tuple[str, ...]) -> None:
    """As a package for it would: another MPI is loaded by a program that does not name it."""
    (tmp_path / "other.c").write_text("int initialize(void) { return 0; }")
    command = "cc -shared -fPIC -Wl,-soname,libmpi.so.40 other.c -o libmpi.so.40.30"
    subprocess.run(command.split(), cwd=tmp_path, check=True, timeout=60)
    (tmp_path / "program.py").write_text(
        "import ctypes, sys\nctypes.CDLL(sys.argv[1])\nsys.stdin.read()  # until the launcher has said it\n"
    )
    library = tmp_path / "libmpi.so.40.30"
    ours, theirs = os.pipe()
    job = start("-n", 2, *script, tmp_path / "program.py", library, stdin=ours)
    os.close(ours)
    line = job.process.stderr.readline()
    assert line.startswith(f"weft run: the program has loaded {library}, another MPI: ")
    assert "`weft mpi4py-wheel`" in line
    os.close(theirs)
    outcome = job.wait()
    assert (outcome.stdout, outcome.stderr, outcome.exit_code) == ("", "", 0)


def test_mpi4py_of_another_mpi_ends_the_job(start, tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text("int initialize(void) { return 0; }")
    command = "cc -shared -fPIC -Wl,-soname,libmpi.so.40 other.c -o libmpi.so.40.30"
    subprocess.run(command.split(), cwd=tmp_path, check=True, timeout=60)
    library = tmp_path / "libmpi.so.40.30"
    # As `import mpi4py` would. Only the launcher ends it.
    (tmp_path / "program.py").write_text(
        "import ctypes, sys\nctypes.CDLL(sys.argv[1])\nsys.stdin.read()\n# mpi4py\n"
    )
    ours, theirs = os.pipe()
    job = start("-n", 2, tmp_path / "program.py", library, stdin=ours)
    os.close(ours)
    outcome = job.wait()
    os.close(theirs)
    assert outcome.exit_code == 1
    assert outcome.stderr.startswith(f"weft run: mpi4py has loaded {library}, another MPI: each of the 2 ")
    assert "`weft mpi4py-wheel`" in outcome.stderr


@pytest.mark.parametrize(
    ("text", "words", "is_one"),
    [
        ("from mpi4py import MPI", (), True),
        ("import weft\nfrom mpi4py import MPI", (), False),  # it may use both
        ("import solver", (), False),
        ("import solver", ("-m", "mpi4py"), True),
    ],
)
def test_programs_of_mpi4py_are_known_by_their_text(tmp_path: Path, text: str, words, is_one: bool) -> None:
    (tmp_path / "program.py").write_text(text)
    assert is_of_mpi4py(["python", *words, str(tmp_path / "program.py"), "none.txt"]) == is_one
    assert not is_of_mpi4py(["python", str(tmp_path / "missing.py")])


@pytest.mark.parametrize(
    ("name", "is_other"),
    [
        ("libmpi.so.12", True),
        ("libmpi.so.40.30.5", True),
        ("libmpi_cray.so.12", True),
        ("libmpi_abi.so.1", False),
        ("libmpi4pyutil.so", False),
    ],
)
def test_wefts_own_mpi_is_no_other(name: str, is_other: bool) -> None:
    maps = (
        f"7f0000000000-7f0000001000 r-xp 00000000 08:01 1234                       /usr/lib/{name}\n"
        "7fff00000000-7fff00001000 rw-p 00000000 00:00 0                          [stack]\n"
    )
    assert mapped_library(maps) == (f"/usr/lib/{name}" if is_other else None)


def test_files_that_are_no_programs_name_no_library(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for content in (b"", b"#!/bin/sh\n", b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + b"\xff" * 200):
        file.write_bytes(content)
        assert named_library(str(file)) is None
    assert named_library(str(tmp_path / "none")) is None


def test_only_pe_0_has_the_input(run, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys; sys.stdout.write(os.environ['WEFT_PE'] + ':' + sys.stdin.read() + '\\n')"
    )
    text = tmp_path / "input"
    text.write_text("some input")
    with text.open() as stdin:
        outcome = run("-n", 3, program, stdin=stdin)
    assert sorted(outcome.stdout.splitlines()) == ["0:some input", "1:", "2:"]


def test_output_is_the_terminal_itself(start, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys; print([stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)])"
    )
    ours, theirs = pty.openpty()
    job = start("-n", 1, program, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    with open(ours, "rb", closefd=False) as terminal:
        assert terminal.readline() == b"[True, True, True]\r\n"
    job.wait()
    os.close(ours)


def test_the_socket_is_reachable_for_this_user_only(run, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, stat\n"
        "folder = os.path.dirname(os.environ['WEFT_BOOTSTRAP'])\n"
        "print(oct(stat.S_IMODE(os.stat(folder).st_mode)), os.listdir(folder))"
    )
    assert run("-n", 1, program).stdout == "0o700 ['launcher']\n"


def test_a_wrapper_may_stand_between(run, probe: Path) -> None:
    outcome = run("-n", 2, "sh", "-c", '"$0" 3; exit $?', probe)
    assert outcome.exit_code == 0
    assert len(outcome.stdout.splitlines()) == 2


def test_programs_see_their_number_on_the_host(run) -> None:
    """They choose a GPU by it before MPI_Init, as those of OSU do."""
    outcome = run("-n", 3, "sh", "-c", 'test "$MPI_LOCALRANKID" = "$WEFT_PE"')
    assert outcome.exit_code == 0, outcome.stderr


@pytest.mark.parametrize("folder", ["x" * 120])
def test_a_long_temporary_folder_is_no_obstacle(run, probe: Path, job_folder: Path, folder: str) -> None:
    long_folder = job_folder / folder
    long_folder.mkdir()
    outcome = run("-n", 2, probe, env={**os.environ, "TMPDIR": str(long_folder)})
    assert outcome.exit_code == 0, outcome.stderr
    long_folder.rmdir()


def variables_of(pattern: str, *folders: str) -> set[str]:
    """The variables that `pattern` finds in the sources."""
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in SOURCES]
    return {name for path in sources for name in re.findall(pattern, path.read_text(encoding="utf-8"))}


def test_help_names_every_variable(start_command) -> None:
    outcome = start_command([sys.executable, "-m", "weft", "run", "--help"]).wait()
    assert outcome.exit_code == 0
    read = variables_of(r'getenv\("(WEFT_\w+)"', "src", "python/src")
    assert {"WEFT_STAGING", "WEFT_BOOTSTRAP"} <= read
    launched = variables_of(r'"((?:WEFT|UCX)_[A-Z_]+|PYTHONHASHSEED)":? ?', "python/weft/launch")
    assert {"WEFT_PE", "UCX_POSIX_DIR", "PYTHONHASHSEED"} <= launched
    launched -= {"WEFT_CC", "WEFT_CXX"}  # of `weft mpicc`: docs/mpi.md
    missing = {name for name in read | launched if not re.search(rf"\b{name}\b", outcome.stdout)}
    assert not missing, "`weft run --help` does not name them"
    # "(VARIABLE)": the launchers' own variables do not have the effect of an option.
    settings = set(re.findall(r"\((WEFT_\w+)\)", outcome.stdout))
    assert settings == {setting.variable for setting in SETTINGS}


def test_the_page_on_running_names_every_option() -> None:
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    missing = [s.option for s in SETTINGS if f"`{s.option}" not in page or f"`{s.variable}" not in page]
    assert not missing, "docs/running.md does not list them"


def test_an_option_is_the_same_as_its_variable(run, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    names = ("WEFT_STATS", "WEFT_MACHINE", "WEFT_STAGING", "WEFT_GPUS")
    program.write_text(f"import os; print([os.environ.get(name) for name in {names}])")
    environment = {name: text for name, text in os.environ.items() if name not in names}
    assert run("-n", 1, program, env=environment).stdout == "[None, None, None, None]\n"
    options = ("--stats", "--machine", "loopback", "--staging", "host", "--gpus", "0,2")
    expected = "['1', 'loopback', 'host', '0,2']\n"
    assert run("-n", 1, *options, program, env=environment).stdout == expected
    environment["WEFT_MACHINE"] = "ucx"
    assert run("-n", 1, program, env=environment).stdout == "[None, 'ucx', None, None]\n"


def test_info_says_what_is_there(start_command) -> None:
    outcome = start_command([sys.executable, "-m", "weft", "info"]).wait()
    assert outcome.exit_code == 0, outcome.stderr
    lines = outcome.stdout.splitlines()
    assert lines[0].startswith("weft ")
    for beginning in (
        "UCX 1.",
        "UCX transports",
        "memory host: usable",
        "memory cuda: ",
        "memory emulated: ",
        "settings of jobs started here: --staging device --gpus auto",
    ):
        assert any(line.startswith(beginning) for line in lines), outcome.stdout


def test_a_reader_that_has_enough_is_no_error(start_command) -> None:
    outcome = start_command(["sh", "-c", '"$0" -m weft info | true', sys.executable]).wait()
    assert outcome.stderr == ""


DESCRIPTORS = """\
import os, sys
if os.environ["WEFT_PE"] == "0":
    with open(sys.argv[1], "w") as note:
        note.write(" ".join(os.readlink(f"/proc/self/fd/{fd}") for fd in range(3)))
"""


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_descriptors(start_command, tmp_path: Path, closed: str) -> None:
    program, note = tmp_path / "program.py", tmp_path / "note"
    program.write_text(DESCRIPTORS, encoding="utf-8")
    weft_run = [sys.executable, "-m", "weft", "run", "-n", "2"]
    started = ["sh", "-c", f'exec "$@" {closed}', "sh", *weft_run]
    outcome = start_command([*started, str(program), str(note)]).wait()
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    places = note.read_text(encoding="utf-8").split()
    for fd, word in enumerate(("<&-", ">&-", "2>&-")):
        assert word not in closed.split() or places[fd] == "/dev/null"
    assert start_command([*started, "sh", "-c", "exit 3"]).wait().exit_code == 3
