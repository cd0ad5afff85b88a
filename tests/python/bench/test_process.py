"""Launched programs: figures found among banners, failures with their last words, nothing left behind."""

import os
import select
import signal
import socket
import subprocess
import sys
import threading

import pytest

from weft_bench.errors import BenchError
from weft_bench.process import capture, finish, launched, read_measurements, wait_listening
from weft_bench.question import Question, Step

STEPS = [Step(8, 10, 1), Step(64, 10, 2)]
LATENCY = Question("latency", (8, 64))


def test_figures_are_found_among_banners():
    output = """Charm++> Running
{"size_bytes": 64, "metric": "latency_us", "value": 2.5}
{not json}
{"size_bytes": 8, "metric": "rate_Mps", "value": 99}
{"size_bytes": 8, "metric": "latency_us", "value": 1}
bye"""
    readings = read_measurements(output, LATENCY, STEPS, "a program")
    assert [(r.size_bytes, r.value, r.warmup) for r in readings] == [(8, 1.0, 1), (64, 2.5, 2)]


def test_a_missing_figure_is_an_error_with_the_last_lines():
    with pytest.raises(
        BenchError, match=r"a program printed no latency_us for \[8, 64\] bytes(.|\n)*oh dear"
    ):
        read_measurements("oh dear", LATENCY, STEPS, "a program")


def test_a_failing_program_is_quoted():
    with pytest.raises(BenchError, match=r"the thing ended with status 3(.|\n)*it broke"):
        capture([sys.executable, "-c", "print('it broke'); raise SystemExit(3)"], "the thing")


def test_the_environment_is_added_to():
    program = "import os; print(os.environ['ADDED'], 'PATH' in os.environ)"
    assert capture([sys.executable, "-c", program], "the thing", {"ADDED": "yes"}).split() == ["yes", "True"]


def test_a_program_that_hangs_is_killed_with_its_children():
    child = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with launched([sys.executable, "-c", program]) as process:
        grandchild = os.pidfd_open(int(process.stdout.readline()))
        with pytest.raises(BenchError, match="did not end within 0 s"):
            finish(process, "the thing", timeout_s=0.01)
    assert process.returncode == -signal.SIGKILL
    try:
        ended, _, _ = select.select([grandchild], [], [], 30)
        assert ended == [grandchild]
    finally:
        os.close(grandchild)


def test_a_program_that_hangs_is_quoted():
    class Hanging:
        def communicate(self, timeout):
            raise subprocess.TimeoutExpired("it", timeout, output=b"step 1\nstep 2\n")

    with pytest.raises(BenchError, match=r"did not end within 7 s .* its last lines:\n  step 1\n  step 2"):
        finish(Hanging(), "the thing", timeout_s=7.0)


def bound_socket() -> socket.socket:
    """It has a port, so that nothing else listens there."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound


def test_waiting_for_a_server_that_dies_ends_with_its_last_words():
    with (
        bound_socket() as server,
        launched([sys.executable, "-c", "raise SystemExit('no network today')"]) as process,
        pytest.raises(BenchError, match="no network today"),
    ):
        wait_listening(process, server.getsockname()[1], "the server")


def test_waiting_for_a_server_ends_when_it_listens():
    with (
        bound_socket() as server,
        launched([sys.executable, "-c", "import signal; signal.pause()"]) as process,
    ):
        listening = threading.Thread(target=server.listen)
        listening.start()
        wait_listening(process, server.getsockname()[1], "the server")
        listening.join()
        assert process.poll() is None
