"""The first process of a test host, and what starts programs there: sshd and ssh in one file.

    remote_shell.py serve SOCKET               process 1 of a host: starts programs, reaps what ends there
    remote_shell.py run SOCKET PROGRAM [...]   runs a program there with this process's streams, environment
    remote_shell.py agent FOLDER HOST COMMAND  as ssh: HOST's socket is FOLDER/HOST.sock

A request is one message: the descriptors 0, 1 and 2, and JSON. Answers are lines: "pid N", then "exit CODE".
Process 1 of a PID namespace takes all others with it when it ends.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
from pathlib import Path

# A request holds an environment.
MAX_REQUEST_BYTES = 1 << 20
# The exit code of ssh if the connection has gone or the program was killed.
SSH_FAILED = 255
# If this file exists, the agent does not notice the end of a host: no packet tells ssh of a lost power.
UNNOTICED = "unnoticed"
# A process that asks for a program passes these on to it.
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
# Options of ssh, without values, that launchers give.
SSH_OPTIONS = ("-x", "-q", "-n", "-T")
# Variables that belong to the host, not to the process that asks.
OF_THE_HOST = ("TMPDIR", "HOSTNAME", "PATH")


class Server:
    """One thread; each connection is one program."""

    def __init__(self, path: str) -> None:
        self.connections: dict[int, socket.socket] = {}  # by the pid of the program
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        os.chmod(path, 0o600)
        self.listener.listen(64)
        self.wakeup, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)
        self.selector.register(self.wakeup, selectors.EVENT_READ, self.reap)

    def serve(self) -> None:
        while True:
            for key, _ in self.selector.select():
                key.data()

    def accept(self) -> None:
        connection, _ = self.listener.accept()
        self.selector.register(connection, selectors.EVENT_READ, lambda: self.start(connection))

    def start(self, connection: socket.socket) -> None:
        self.selector.unregister(connection)
        data, descriptors, _, _ = socket.recv_fds(connection, MAX_REQUEST_BYTES, 3)
        if len(descriptors) != 3:
            connection.close()
            return
        request = json.loads(data)
        here = {name: os.environ[name] for name in OF_THE_HOST if name in os.environ}
        pid = os.fork()
        if pid == 0:
            execute(request["argv"], {**request["environment"], **here}, request["folder"], descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self.connections[pid] = connection
        send(connection, f"pid {pid}")
        self.selector.register(connection, selectors.EVENT_READ, lambda: self.on_word(pid))

    def on_word(self, pid: int) -> None:
        """A number: the signal to send. The end of the connection: the asking process has gone; SIGKILL."""
        connection = self.connections.get(pid)
        if connection is None:
            return  # it ended in the same turn
        word = connection.recv(64)
        try:
            if word:
                os.kill(pid, int(word))
            else:
                os.killpg(pid, signal.SIGKILL)  # with all that it has started, as it leads a session
        except ProcessLookupError:
            pass
        if not word:
            self.forget(pid)

    def forget(self, pid: int) -> None:
        connection = self.connections.pop(pid, None)
        if connection is not None:
            self.selector.unregister(connection)
            connection.close()

    def reap(self) -> None:
        os.read(self.wakeup, 4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.connections:
                send(self.connections[pid], f"exit {os.waitstatus_to_exitcode(status)}")
                self.forget(pid)


def send(connection: socket.socket, line: str) -> None:
    try:
        connection.sendall(line.encode())
    except OSError:
        pass  # whoever asked has gone


def execute(argv: list[str], environment: dict[str, str], folder: str, descriptors: list[int]) -> None:
    """In the child: becomes the program."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        os.setsid()
        os.chdir(folder)
        os.execvpe(argv[0], argv, environment)
    except OSError as error:
        os.write(2, f"{argv[0]} cannot be started on {os.uname().nodename}: {error}\n".encode())
    finally:
        os._exit(127)


def run(path: str, argv: list[str]) -> int:
    """The exit code; negative for a signal, as with subprocess."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    request = {"argv": argv, "environment": dict(os.environ), "folder": os.getcwd()}
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_REQUEST_BYTES)
    # Blocked until the request has been sent.
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    for number in FORWARDED:
        signal.signal(number, lambda received, _: connection.sendall(str(int(received)).encode()))
    socket.send_fds(connection, [json.dumps(request).encode()], [0, 1, 2])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    while word := connection.recv(64):
        kind, _, number = word.decode().partition(" ")
        if kind == "exit":
            return int(number)
    return -signal.SIGKILL  # the host has gone


def end_as(code: int) -> None:
    """Ends this process as the program ended."""
    if code >= 0:
        sys.exit(code)
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)


def main(arguments: list[str]) -> None:
    what = arguments[0]
    if what == "serve":
        Server(arguments[1]).serve()
    elif what == "run":
        end_as(run(arguments[1], arguments[2:]))
    elif what == "agent":
        folder, *rest = arguments[1:]
        host, *command = [word for word in rest if word not in SSH_OPTIONS]
        code = run(str(Path(folder) / f"{host}.sock"), ["/bin/sh", "-c", " ".join(command)])
        if code < 0 and (Path(folder) / UNNOTICED).exists():
            signal.pause()
        sys.exit(code if code >= 0 else SSH_FAILED)


if __name__ == "__main__":
    main(sys.argv[1:])
