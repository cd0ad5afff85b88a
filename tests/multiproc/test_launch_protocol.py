"""What `weft run` makes of PEs that do not keep to the protocol."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

# A PE in Python that sends the bytes, or does what, its argument says.
PROGRAM = """\
import os, signal, socket, struct, sys

def frame(kind, payload=b""):
    return struct.pack("<4sIQ", b"WFT3", kind, len(payload)) + payload

pe = int(os.environ["WEFT_PE"])
connection = socket.socket(socket.AF_UNIX)
connection.connect(os.environ["WEFT_BOOTSTRAP"])

def send(data):
    connection.sendall(data)

def hello(number=pe):
    send(frame(1, struct.pack("<I", number)))
    return connection.recv(1000)

exec(sys.argv[1])
print(connection.recv(1000)[16:].decode(), flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("hello(); send(b'G' * 16)", "malformed frame: it begins with b'GGGG', not with b'WFT3'"),
        ("hello(); send(frame(77))", "malformed frame: unknown type 77"),
        (
            "hello(); send(struct.pack('<4sIQ', b'WFT3', 2, 1 << 31))",
            "malformed frame: 2147483648 bytes, more than the limit of 1073741824",
        ),
        ("hello(); send(frame(6))", "malformed frame: a PE does not send 'WELCOME'"),
        ("hello(); send(frame(4, b'abc'))", "malformed frame: 'FINISHED' of 3 bytes"),
        ("hello(); send(frame(3, b'abc'))", "malformed frame: a barrier of 3 bytes"),
        (
            "hello(); send(frame(2)[:10]); connection.close(); signal.pause()",
            "the connection ended inside a frame, after 10 bytes",
        ),
        (
            "hello(); send(frame(4, bytes(4)) + frame(3))",
            "PE 0 (pid PID) sent 'BARRIER' after it had finished",
        ),
        (
            "hello(); send(frame(4, bytes(4)) + frame(3)[:10]); connection.shutdown(socket.SHUT_WR)",
            "the connection ended inside a frame, after 10 bytes",
        ),
    ],
)
def test_a_pe_that_breaks_the_protocol_ends_the_job(run, program: Path, script: str, problem: str) -> None:
    outcome = run("-n", 1, program, script)
    sentence = re.sub(r"pid \d+", "pid PID", outcome.stderr)
    named = problem if problem.startswith("PE 0") else f"PE 0 (pid PID): {problem}"
    assert sentence == f"weft run: {named}; ending the job\n"
    assert outcome.exit_code == 1


@pytest.mark.parametrize(
    ("exit_script", "exit_code", "sentence"),
    [
        ("os.kill(os.getpid(), 9)", 137, "PE 0 (pid PID) was killed by signal 9 (SIGKILL)"),
        ("os._exit(3)", 3, "PE 0 (pid PID) exited with code 3"),
        ("os._exit(0)", 1, "PE 0 (pid PID): the connection ended inside a frame, after 10 bytes"),
    ],
)
def test_a_pe_that_ends_inside_a_frame_is_named_by_its_death(
    run, program: Path, exit_script: str, exit_code: int, sentence: str
) -> None:
    outcome = run("-n", 1, program, f"hello(); send(frame(2)[:10]); {exit_script}")
    assert re.sub(r"pid \d+", "pid PID", outcome.stderr) == f"weft run: {sentence}\n"
    assert outcome.exit_code == exit_code


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("send(b'GET / HTTP/1.1' + bytes(2))", "malformed frame: it begins with b'GET ', not with b'WFT3'"),
        (
            "send(frame(1, bytes(4)).replace(b'WFT3', b'WFT9'))",
            "it speaks version 9 of the launch protocol, this `weft run` version 3: "
            "use the `weft` command and the library of one Weft release",
        ),
        ("send(frame(3))", "malformed frame: 'BARRIER' of 0 bytes instead of a hello"),
        ("send(frame(1, b'abc'))", "malformed frame: 'HELLO' of 3 bytes instead of a hello"),
        ("send(frame(1, struct.pack('<I', 5)))", "it says that it is PE 5 of 1; do not set WEFT_PE"),
    ],
)
def test_who_is_no_pe_is_refused_and_told_why(run, program: Path, script: str, problem: str) -> None:
    outcome = run("-n", 1, program, script)
    assert re.sub(r"\d+:", "PID:", outcome.stderr, count=1) == f"weft run: refused process PID: {problem}\n"
    assert outcome.stdout == f"weft run refused this process: {problem}\n"
    assert outcome.exit_code == 0


SECOND_PROCESS = """
again = sys.argv[2:] == ["again"]
if pe == 1 and not again:
    open("turn").close()  # a fifo: waits until PE 0 has seen its second process refused
if again:
    send(frame(1, struct.pack("<I", pe)))
else:
    hello()
    if pe == 0:
        import subprocess
        subprocess.run([sys.executable, *sys.argv, "again"])
        open("turn", "w").close()
    send(frame(4, bytes(4)))
    sys.exit()
"""


def test_a_second_process_of_one_pe_is_refused(run, program: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "turn")
    outcome = run("-n", 2, program, SECOND_PROCESS, cwd=tmp_path)
    problem = (
        "PE 0 has joined already, and one launch is one Weft job: for a second program start "
        "`weft run` again; set WEFT_BOOTSTRAP=singleton for a program that a PE starts"
    )
    assert re.sub(r"\d+:", "PID:", outcome.stderr, count=1) == f"weft run: refused process PID: {problem}\n"
    assert outcome.stdout == f"weft run refused this process: {problem}\n"
    assert outcome.exit_code == 0


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (
            "hello(); send(frame(2 + pe))",
            r"PE \d entered (a barrier while PE 0 waits in an exchange"
            "|an exchange while PE 1 waits in a barrier): "
            "every PE has to enter the same collectives in the same order",
        ),
        (
            "hello(); send(frame(3)) if pe else send(frame(4, bytes(4)))",
            "PE 1 waits in a barrier that PE 0, which has finished, will never enter: "
            "every PE has to enter the same collectives",
        ),
        (
            "hello(); send(frame(3) + frame(3)) if pe else None",
            "PE 1 entered a barrier twice before the others entered it once",
        ),
    ],
)
def test_collectives_that_do_not_match_end_the_job(run, program: Path, script: str, problem: str) -> None:
    outcome = run("-n", 2, program, script)
    assert re.fullmatch(f"weft run: {problem}; ending the job\n", outcome.stderr), outcome.stderr
    assert outcome.exit_code == 1


DEATH_AND_ABORT = """
launcher = int(os.environ["WEFT_LAUNCHER_PID"])
hello()
if pe == 1:
    with open("pid", "w") as turn:  # a fifo
        turn.write(str(os.getpid()))
else:
    with open("pid") as turn:
        victim = int(turn.read())
    os.kill(launcher, signal.SIGSTOP)
    os.kill(victim, signal.SIGKILL)
    while open(f"/proc/{victim}/stat").read().rpartition(")")[2].split()[0] != "Z":
        pass
    send(frame(5, bytes(4) + b"PE 0 noticed that PE 1 is gone"))
    os.kill(launcher, signal.SIGCONT)
connection.recv(1)
signal.pause()
"""


def test_a_death_is_the_reason_of_the_aborts_that_it_causes(run, program: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")
    outcome = run("-n", 2, program, DEATH_AND_ABORT, cwd=tmp_path)
    assert re.fullmatch(
        r"weft run: PE 1 \(pid \d+\) was killed by signal 9 \(SIGKILL\); ending the job\n", outcome.stderr
    ), outcome.stderr
    assert outcome.exit_code == 128 + signal.SIGKILL
