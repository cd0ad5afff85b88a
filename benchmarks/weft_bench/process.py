"""Launching measuring processes so that none is left behind, and reading what they print."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from weft_bench.errors import BenchError
from weft_bench.question import Question, Step
from weft_bench.system import Reading

#: A launch that takes longer than this hangs.
TIMEOUT_S = 180.0
_TAIL_LINES = 12


@contextlib.contextmanager
def launched(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Start `command` in a process group of its own, and kill the group on leaving, whatever happened.

    `environment` is added to this process's own. Standard output and error come as one text stream.
    """
    process = subprocess.Popen(
        list(command),
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def finish(process: subprocess.Popen[str], what: str, timeout_s: float = TIMEOUT_S) -> str:
    """All that `process` prints until it ends; BenchError when it fails or does not end in `timeout_s`."""
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        said = tail((error.output or b"").decode(errors="replace"))
        text = f"{what} did not end within {timeout_s:.0f} s and was killed"
        raise BenchError(f"{text}; its last lines:\n{said}" if said else text) from None
    if process.returncode != 0:
        raise BenchError(f"{what} ended with status {process.returncode}; its last lines:\n{tail(output)}")
    return output


def capture(
    command: Sequence[str],
    what: str,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> str:
    """What `command` prints, run to its end."""
    with launched(command, environment) as process:
        return finish(process, what, timeout_s)


def tail(output: str) -> str:
    """The end of a program's output, indented, for an error message."""
    return "\n".join("  " + line for line in output.splitlines()[-_TAIL_LINES:])


def read_measurements(output: str, question: Question, steps: Sequence[Step], what: str) -> list[Reading]:
    """The readings in the output of a measuring program, one for every step.

    Such a program prints lines of {"size_bytes": ..., "metric": ..., "value": ...}; lines that are no JSON
    objects (banners of launchers) are passed over.
    """
    values: dict[int, float] = {}
    for line in output.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            found = json.loads(line) if line.startswith("{") else None
            if isinstance(found, dict) and found.get("metric") == question.metric:
                values[int(found["size_bytes"])] = float(found["value"])
    missing = [step.size_bytes for step in steps if step.size_bytes not in values]
    if missing:
        raise BenchError(
            f"{what} printed no {question.metric} for {missing} bytes; its last lines:\n{tail(output)}"
        )
    return [Reading(step.size_bytes, values[step.size_bytes], step.warmup) for step in steps]


def free_port() -> int:
    """A TCP port of the loopback interface that nothing listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_listening(process: subprocess.Popen[str], port: int, what: str, timeout_s: float = 20.0) -> None:
    """Return once something listens on `port`, without connecting to it (a server may accept only once)."""
    deadline = time.monotonic() + timeout_s
    while not _listening(port):
        if process.poll() is not None:
            finish(process, what)
            raise BenchError(f"{what} ended before it listened on port {port}")
        if time.monotonic() > deadline:
            raise BenchError(f"{what} did not listen on port {port} within {timeout_s:.0f} s")
        time.sleep(0.005)


def _listening(port: int) -> bool:
    wanted = f":{port:04X}"
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        with contextlib.suppress(OSError):
            for line in table.read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[1].endswith(wanted) and fields[3] == "0A":
                    return True
    return False
