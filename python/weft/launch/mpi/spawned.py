"""Jobs that a job has spawned (MPI_Comm_spawn): each has a `weft run` of its own, a child of this one.

The request of the root is a row of texts, each with a zero byte behind it: the address of the root's socket,
the port to which the new job connects, the number of commands, and for each command the number of processes,
the number of hints with a key and a value for each, and the number of words with the words. When the job has
called at the port, the root sends a request with an empty address. mpi/src/connected/spawning.cpp sends them.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from weft.launch.command import OWN_VARIABLES, UsageError, parse_num_pes, program_argv
from weft.launch.processes import describe_exit
from weft.launch.signals import SignalFd, die_with_parent

# As in src/machine/links/incoming_link.h and src/models/mpi/connected/connected_processes.cpp.
_HELLO = struct.Struct("<8sII 16x4x4x QQiI")
_HEADER = struct.Struct("<IIQ")
_MAGIC = b"WEFTLINK"
_REVISION = 2
_ENDED = 7
_PORT_PREFIX = "weft-port"
# Settings of the job that spawns which do not hold for another one.
_OF_THE_JOB = (*OWN_VARIABLES, "WEFT_MPI_RANKS", "WEFT_MPI_RANK_MAP", "UCX_POSIX_DIR")


class RequestError(Exception):
    """The request is not as it should be, or cannot be fulfilled. The message goes to the root."""


@dataclass
class _Command:
    num_processes: int
    hints: dict[str, str]
    words: list[str]


@dataclass
class _Request:
    address: str
    port: str
    commands: list[_Command] = field(default_factory=list)


@dataclass
class SpawnedJob:
    """One spawned job; `pid` is that of its `weft run`, which is not reaped yet."""

    pid: int
    command: str
    request: _Request
    is_connected: bool = False


def _texts(request: bytes) -> Iterator[str]:
    yield from (text.decode(errors="surrogateescape") for text in request.split(b"\0"))


def _parse(request: bytes) -> _Request:
    texts = _texts(request)
    parsed = _Request(next(texts), next(texts))
    _place_of(parsed.port)
    for _ in range(int(next(texts)) if parsed.address else 0):
        num_processes = int(next(texts))
        hints = {}
        for _ in range(int(next(texts))):
            key = next(texts)
            hints[key] = next(texts)
        parsed.commands.append(_Command(num_processes, hints, [next(texts) for _ in range(int(next(texts)))]))
    if parsed.address and not (parsed.commands and all(command.words for command in parsed.commands)):
        raise ValueError("a job without a command")
    return parsed


def _place_of(port: str) -> tuple[int, int, int, int]:
    """The job (two numbers), the rank and the number that a port's name has.

    Raises:
        ValueError: it is no name of a port.
    """
    prefix, *parts = port.split(":")
    if prefix != _PORT_PREFIX or len(parts) != 4:
        raise ValueError(f"'{port}' is no name of a port")
    high, low, rank, number = int(parts[0], 16), int(parts[1], 16), int(parts[2]), int(parts[3], 16)
    if not 0 <= rank < 1 << 31 or not all(0 <= part < 1 << 64 for part in (high, low, number)):
        raise ValueError(f"'{port}' is no name of a port")
    return high, low, rank, number


def _is_this_host(host: str) -> bool:
    own = socket.gethostname()
    return host in ("", "localhost", own, own.split(".")[0])


def _one_value(commands: list[_Command], key: str) -> str | None:
    """The value of a hint that the commands of a job share.

    Raises:
        RequestError: they have different ones.
    """
    values = {command.hints.get(key) for command in commands}
    if len(values) > 1:
        raise RequestError(
            f"the commands have different values of '{key}', and a job has one; spawn them apart"
        )
    return values.pop()


def _is_in_folder(program: str) -> bool:
    """Whether a program is looked for from the folder of the job on, and not on PATH."""
    return "/" in program or program.endswith(".py") or (program != "-m" and shutil.which(program) is None)


def _words_of(commands: list[_Command], folder: str | None, search_path: str | None) -> list[str]:
    words: list[str] = []
    for command in commands:
        program, *arguments = command.words
        if any(pair in ((":", "-n"), (":", "-np")) for pair in itertools.pairwise(arguments)):
            raise RequestError(
                "`weft run` reads ':' and '-n' among the arguments of a program as the next program; "
                "change one of them"
            )
        if search_path is not None and "/" not in program:
            found = [
                path for path in search_path.split(":") if os.access(os.path.join(path, program), os.X_OK)
            ]
            program = os.path.join(found[0], program) if found else program
        elif folder is not None and _is_in_folder(program):
            program = os.path.abspath(os.path.join(folder, program))
        # Refuses what cannot be started, before anything is.
        num_processes = parse_num_pes(str(command.num_processes))
        words += [":"] if words else []
        words += ["-n", str(num_processes), *program_argv(program, arguments)]
    return words


def _environment(port: str, settings: str | None) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in _OF_THE_JOB}
    for line in (settings or "").splitlines():
        name, _, value = line.partition("=")
        if name:
            environment[name] = value
    return {**environment, "WEFT_MPI_PARENT": port}


class SpawnedJobs:
    """The spawned jobs of a launch."""

    def __init__(self, signals: SignalFd) -> None:
        self._signals = signals
        self._jobs: dict[int, SpawnedJob] = {}

    @property
    def running(self) -> bool:
        """Whether one has not ended."""
        return bool(self._jobs)

    def __contains__(self, pid: int) -> bool:
        return pid in self._jobs

    def start(self, request: bytes) -> None:
        """Starts the job that a PE asks for, or tells the PE why it cannot be started."""
        try:
            parsed = _parse(request)
        except (StopIteration, ValueError, RuntimeError):
            return  # the PE has damaged its own request, and names nobody to tell
        if not parsed.address:
            for job in self._jobs.values():
                job.is_connected = job.is_connected or job.request.port == parsed.port
            return
        try:
            job = self._start(parsed)
        except (RequestError, UsageError, OSError) as error:
            _tell(parsed, str(error))
        else:
            self._jobs[job.pid] = job

    def _start(self, request: _Request) -> SpawnedJob:
        for command in request.commands:
            if not _is_this_host(host := command.hints.get("host", "")):
                raise RequestError(
                    f"the hint 'host' is '{host}', and `weft run` starts processes on its own host"
                )
        folder = _one_value(request.commands, "wdir")
        search_path = _one_value(request.commands, "path")
        words = _words_of(request.commands, folder, search_path)
        process = subprocess.Popen(
            [sys.executable, "-m", "weft", "run", *words],
            cwd=folder,
            env=_environment(request.port, _one_value(request.commands, "env")),
            stdin=subprocess.DEVNULL,
            preexec_fn=self._between_fork_and_exec(os.getpid()),
        )
        process.returncode = 0  # the launcher reaps it by its number
        return SpawnedJob(process.pid, " ".join(request.commands[0].words), request)

    def _between_fork_and_exec(self, launcher_pid: int) -> Callable[[], None]:
        def prepare() -> None:
            # Threads of `--metrics` may be at work during the fork: nothing here needs their locks.
            die_with_parent(launcher_pid)
            self._signals.restore_mask()

        return prepare

    def ended(self, pid: int, exit_status: int) -> SpawnedJob:
        """The `weft run` of a job has been reaped. If the job has not connected, the root learns it."""
        job = self._jobs.pop(pid)
        if not job.is_connected:
            ending = describe_exit(exit_status)
            _tell(
                job.request,
                f"the spawned job `{job.command}` {ending} before all its processes called MPI_Init",
            )
        return job

    def send_signal(self, number: int) -> None:
        """Signals the `weft run` of each job, which passes the signal on."""
        for pid in self._jobs:
            os.kill(pid, number)

    def kill(self) -> None:
        """Ends all at once. Their PEs end with them."""
        self.send_signal(signal.SIGKILL)
        while self._jobs:
            os.waitpid(self._jobs.popitem()[0], 0)


def _tell(request: _Request, sentence: str) -> None:
    """Tells the root at its socket that no job will connect to the port, unless the root has ended."""
    high, low, rank, port = _place_of(request.port)
    text = struct.pack("<Q", port) + sentence.encode(errors="replace")
    message = (
        _HELLO.pack(_MAGIC, _REVISION, 0, high, low, rank, 0) + _HEADER.pack(_ENDED, 0, len(text)) + text
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connected:
        connected.settimeout(1)
        try:
            connected.connect("\0" + request.address)
            connected.sendall(message)
        except OSError:
            pass
