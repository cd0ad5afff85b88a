"""Processes that start or join later: MPI_Comm_spawn, ports, published names, MPI_Comm_join."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

HANG_S = 150


@pytest.fixture
def start(mpi_program, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """start(2, "serve", ...) starts tests/mpi/connected/ports.c on 2 PEs; None: without a launcher."""
    started: list[subprocess.Popen[str]] = []

    def run(num_pes: int | None, *arguments: object, pass_fds: Sequence[int] = ()) -> subprocess.Popen[str]:
        launcher = [] if num_pes is None else [sys.executable, "-m", "weft", "run", "-n", str(num_pes)]
        argv = [*launcher, str(mpi_program("connected/ports")), *map(str, arguments)]
        process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, pass_fds=pass_fds
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a service, in a folder of published names that only this test uses."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return f"service of a test {uuid.uuid4()}"


def expect_good_end(process: subprocess.Popen[str], what: str) -> None:
    stdout, stderr = process.communicate(timeout=HANG_S)
    assert stderr == ""
    assert stdout.endswith(f"{what}: as expected\n")
    assert process.returncode == 0


@pytest.mark.parametrize("num_pes", [1, 2])
def test_a_job_and_the_one_that_it_spawns_communicate(run_mpi, num_pes):
    result = run_mpi("connected/spawned", num_pes, "all")
    assert result.stderr == ""
    assert result.stdout == "all: as expected\n"
    assert result.returncode == 0


def test_processes_of_two_jobs_spawn_a_third_one(run_mpi):
    result = run_mpi("connected/spawned", 2, "together")
    assert result.stderr == ""
    assert result.stdout == "together: as expected\n"
    assert result.returncode == 0


def test_a_message_that_a_process_has_left_behind_ends_the_job(run_mpi):
    result = run_mpi("connected/spawned", 1, "leave")
    assert "of a connected job has ended before MPI_Comm_disconnect" in result.stderr
    assert result.returncode != 0


def test_the_time_limit_holds_for_spawned_jobs(mpi_program, tmp_path):
    argv = [sys.executable, "-m", "weft", "run", "-n", "1", "--timeout", "3"]
    program = [str(mpi_program("connected/spawned")), "stay"]
    result = subprocess.run(
        [*argv, *program], capture_output=True, text=True, timeout=HANG_S, cwd=tmp_path, check=False
    )
    assert "the job has run for 3 s, the limit of --timeout" in result.stderr
    assert result.returncode == 124


def test_hints_name_the_folder_and_the_environment(run_mpi):
    result = run_mpi("connected/spawned", 2, "hints")
    assert result.stderr == ""
    assert result.returncode == 0


def test_what_cannot_be_spawned_is_an_error_with_a_reason(run_mpi):
    result = run_mpi("connected/spawned", 2, "in vain")
    assert result.stdout == "in vain: as expected\n"
    assert "/no/such/program: No such file or directory" in result.stderr
    assert "`true` exited with code 0 before all its processes called MPI_Init" in result.stderr
    assert "the hint 'host' is 'no-such-host'" in result.stderr
    assert result.returncode == 0


def test_a_launcher_that_spawns_nothing_is_named(run_mpi):
    result = run_mpi("connected/spawned", None, "all")
    assert "(singleton) starts no further processes" in result.stderr
    assert "start the program with `weft run -n 1`" in result.stderr
    assert result.returncode != 0


@pytest.mark.parametrize(
    ("what", "sentence"), [("die", "was killed by signal 9"), ("abort", "MPI_Abort with code 7")]
)
def test_the_end_of_a_spawned_process_ends_both_jobs(run_mpi, what, sentence):
    result = run_mpi("connected/spawned", 2, what)
    assert sentence in result.stderr
    assert "weft run: the spawned job `" in result.stderr
    assert "as expected" not in result.stdout
    assert result.returncode == {"die": 137, "abort": 7}[what]


def test_jobs_of_several_launches_connect(start, service):
    server = start(2, "serve", service, 3)
    assert server.stdout.readline() == "serving\n"
    callers = [start(num_pes, "call", service) for num_pes in (1, 3, None)]
    for caller in callers:
        expect_good_end(caller, "call")
    expect_good_end(server, "serve")
    assert list(Path(os.environ["XDG_RUNTIME_DIR"]).glob("weft-names-*/*")) == []


@pytest.mark.parametrize("how", ["die", "fork"])
def test_the_end_of_a_connected_process_ends_the_other_launch(start, service, how):
    server = start(2, "serve", service, 1)
    assert server.stdout.readline() == "serving\n"
    # The child of the only process does not stand in for it.
    caller = start(1 if how == "fork" else 2, "call", service, how)
    assert "was killed by signal 9" in caller.communicate(timeout=HANG_S)[1]
    stderr = server.communicate(timeout=HANG_S)[1]
    assert "of a connected job has ended before MPI_Comm_disconnect" in stderr
    assert server.returncode != 0
    # The name of a process that has ended is none.
    expect_no_name(start, service)


def expect_no_name(start: Callable[..., subprocess.Popen[str]], service: str) -> None:
    caller = start(1, "call", service)
    assert "MPI_ERR_NAME" in caller.communicate(timeout=HANG_S)[1]


@pytest.mark.parametrize("num_pes", [None, 2])
def test_wrong_ports_are_errors(start, num_pes):
    process = start(num_pes, "refuse")
    stdout, stderr = process.communicate(timeout=HANG_S)
    assert stdout == "refuse: as expected\n"
    assert "'nonsense' is no name of a port" in stderr
    assert process.returncode == 0


def test_two_processes_join_over_a_socket(start):
    one, other = socket.socketpair()
    with one, other:
        both = [start(None, "join", end.fileno(), pass_fds=[end.fileno()]) for end in (one, other)]
        for process in both:
            expect_good_end(process, "join")


@pytest.mark.parametrize("sent", [b"", b"nonsense" * 32, b"weft-port:1:2:0:3".ljust(256, b"\0")])
def test_a_socket_without_a_process_of_mpi_joins_nothing(start, sent):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(sent)
        ours.shutdown(socket.SHUT_WR)
        process = start(None, "join", theirs.fileno(), pass_fds=[theirs.fileno()])
        stderr = process.communicate(timeout=HANG_S)[1]
    assert "calls MPI_Comm_join" in stderr
    assert process.returncode != 0


def test_a_descriptor_that_is_no_socket_joins_nothing(start, tmp_path):
    with open(tmp_path / "file", "w+b") as file:
        process = start(None, "join", file.fileno(), pass_fds=[file.fileno()])
        assert "is no socket whose other end calls MPI_Comm_join" in process.communicate(timeout=HANG_S)[1]
    assert process.returncode != 0


def test_names_of_processes_that_have_ended_are_removed(start, service, tmp_path):
    """Names that are looked for no more, and files that no process has written whole."""
    folder = tmp_path / f"weft-names-{os.geteuid()}"
    folder.mkdir(mode=0o700)
    (folder / "damaged").write_text("")
    (folder / "ended").write_text(f"{2**22 + 1} 1 weft-port:1:2:0:3")
    # The process with that number is another one: it started later.
    (folder / "renumbered").write_text(f"{os.getpid()} 1 weft-port:1:2:0:3")
    server = start(1, "serve", service, 0)
    expect_good_end(server, "serve")
    assert list(folder.iterdir()) == []


def test_other_threads_call_mpi_while_one_joins(start):
    one, other = socket.socketpair()
    signal, told = socket.socketpair()
    with one, other, signal, told:
        process = start(None, "beside", one.fileno(), told.fileno(), pass_fds=[one.fileno(), told.fileno()])
        other.settimeout(HANG_S)
        other.recv(256, socket.MSG_WAITALL)  # the name of its port: now it waits for one
        signal.settimeout(HANG_S)
        signal.send(b"x")
        assert signal.recv(1) == b"x"
        other.shutdown(socket.SHUT_RDWR)
        expect_good_end(process, "beside")
