"""The event loop of `weft run`: one job from the start of its PEs to the exit of the last.

One thread. It wakes for a signal (SIGCHLD among them, so that a dead PE is reaped and named at once), for a
connection, or for a deadline; a job that runs undisturbed costs it nothing.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
from collections.abc import Mapping, Sequence

from weft.launch.connection import Connection
from weft.launch.frames import Frame, FrameType, ProtocolError, encode
from weft.launch.listener import Listener
from weft.launch.processes import Pe, Starter, describe_exit, exit_code_of, reserve_descriptors
from weft.launch.rendezvous import Rendezvous
from weft.launch.signals import ReceivedSignal, SignalFd

# From SIGTERM to SIGKILL for the PEs of a job that ends.
GRACE_S = 1.0
# How long a PE whose connection has closed may take to exit before that counts as its death.
HANGUP_S = 2.0

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PASSED_ON = (signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
_DESCRIPTORS_BESIDE_PES = 64


class Job:
    """Starts `num_pes` processes of `argv` on this host, serves their bootstrap, and ends them together."""

    def __init__(self, argv: Sequence[str], num_pes: int, environment: Mapping[str, str]) -> None:
        self._argv = argv
        self._num_pes = num_pes
        self._environment = environment
        self._pes: list[Pe] = []
        self._connections: dict[int, Connection] = {}  # by PE
        self._rendezvous = Rendezvous(num_pes)
        self._selector = selectors.DefaultSelector()
        self._hangups: dict[int, float] = {}  # PE whose connection closed: when that counts as its death
        self._passed_signal: signal.Signals | None = None
        self._ending = False
        self._kill_at: float | None = None
        self._exit_code = 0

    def run(self) -> int:
        """Returns the exit code of the job: 0, a PE's own, or 128 + the signal that killed it.

        Raises:
            UsageError: the PEs could not be started; those that were have been killed.
        """
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, nobody could be reaped
        watched = [
            s for s in (*_INTERRUPTS, *_PASSED_ON, signal.SIGTSTP) if signal.getsignal(s) != signal.SIG_IGN
        ]
        self._signals = SignalFd([signal.SIGCHLD, *watched])
        try:
            self._listener = Listener(backlog=self._num_pes)
            try:
                self._selector.register(self._listener.socket, selectors.EVENT_READ, self._accept)
                self._selector.register(self._signals, selectors.EVENT_READ, self._handle_signals)
                self._start_pes()
                while any(pe.running for pe in self._pes):
                    self._wait_and_handle()
                return self._exit_code
            finally:
                self._kill_all()
                self._listener.close()
                for key in list(self._selector.get_map().values()):
                    if isinstance(key.data, Connection):
                        key.data.socket.close()
                self._selector.close()
        finally:
            self._signals.close()

    # --- processes

    def _start_pes(self) -> None:
        environment = {
            **self._environment,
            "WEFT_BOOTSTRAP": self._listener.path,
            "WEFT_NUM_PES": str(self._num_pes),
            "WEFT_LAUNCHER_PID": str(os.getpid()),
        }
        starter = Starter(self._argv, environment, self._signals)
        reserve_descriptors(self._num_pes + _DESCRIPTORS_BESIDE_PES)
        for number in range(self._num_pes):
            self._pes.append(starter.start(number))

    def _reap(self) -> None:
        by_pid = {pe.pid: pe for pe in self._pes if pe.running}
        while by_pid:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            pe = by_pid.pop(pid, None)
            if pe is None:
                continue
            pe.exit_status = os.waitstatus_to_exitcode(status)
            # Its last words, such as "finished" or an abort's message, may still be unread.
            if (connection := self._connections.get(pe.number)) is not None:
                self._read(connection)
            self._judge_exit(pe, pe.exit_status)

    def _judge_exit(self, pe: Pe, status: int) -> None:
        """Decides whether the end of a process is a death that ends the job."""
        self._hangups.pop(pe.number, None)
        if self._ending:
            return
        if pe.finished_code is not None:
            code = exit_code_of(status)
            self._exit_code = self._exit_code or code
            if status < 0:
                self._say(f"{pe.name} {describe_exit(status)} after it had finished")
            return
        if self._passed_signal is not None and status == -self._passed_signal:
            self._end(f"interrupted by signal {-status} ({self._passed_signal.name})", 128 - status)
        elif status != 0:
            self._end(f"{pe.name} {describe_exit(status)}", exit_code_of(status))
        else:
            self._check_left_alone(pe)

    def _check_left_alone(self, pe: Pe) -> None:
        """An exit with code 0 is a death for PEs that need this one; who never joins needs nobody."""
        waiting = [p for p in self._connections if p != pe.number and self._pes[p].finished_code is None]
        if pe.number in self._connections:
            if any(other.running and other.finished_code is None for other in self._pes):
                self._end(f"{pe.name} exited with code 0 before the job was finished", 1)
        elif waiting:
            self._end(f"{pe.name} exited with code 0 without joining the job that PE {waiting[0]} is in", 1)

    def _end(self, reason: str, exit_code: int) -> None:
        """Says why, tells every PE, and gives them a moment before they are killed."""
        if self._ending:
            return
        self._ending = True
        self._exit_code = exit_code
        others = any(pe.running for pe in self._pes)
        self._say(f"{reason}; ending the job" if others else reason)
        frame = encode(FrameType.END, f"the job ends: {reason}".encode())
        for connection in self._connections.values():
            connection.send(frame)
        for pe in self._pes:
            pe.send_signal(signal.SIGTERM)
            pe.send_signal(signal.SIGCONT)
        self._kill_at = time.monotonic() + GRACE_S

    def _kill_all(self) -> None:
        for pe in self._pes:
            pe.send_signal(signal.SIGKILL)
        for pe in self._pes:
            if pe.running:
                _, status = os.waitpid(pe.pid, 0)
                pe.exit_status = os.waitstatus_to_exitcode(status)

    # --- events

    def _wait_and_handle(self) -> None:
        deadlines = [*self._hangups.values(), *([self._kill_at] if self._kill_at is not None else [])]
        timeout = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
        for key, events in self._selector.select(timeout):
            if isinstance(key.data, Connection):
                if events & selectors.EVENT_WRITE:
                    key.data.flush()
                    self._watch(key.data)
                if events & selectors.EVENT_READ:
                    self._read(key.data)
            else:
                key.data()
        self._handle_deadlines(time.monotonic())

    def _handle_deadlines(self, now: float) -> None:
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_all()
            self._kill_at = None
        for number, deadline in list(self._hangups.items()):
            if now >= deadline:
                del self._hangups[number]
                pe = self._pes[number]
                self._end(f"{pe.name} closed its connection to the launcher before it had finished", 1)

    def _handle_signals(self) -> None:
        for received in self._signals.read():
            if received.number is signal.SIGCHLD:
                self._reap()
            elif received.number in _INTERRUPTS:
                self._interrupt(received)
            elif received.number is signal.SIGTSTP:
                self._pass_on(received)
                os.kill(os.getpid(), signal.SIGSTOP)
            else:
                self._pass_on(received)

    def _interrupt(self, received: ReceivedSignal) -> None:
        if self._ending or self._passed_signal is not None:
            self._ending = True
            self._exit_code = 128 + received.number
            self._say(f"second signal ({received.number.name}); killing the job")
            self._kill_all()
            return
        self._passed_signal = received.number
        self._say(f"{received.number.name} is passed on to the PEs; a second one kills the job")
        self._pass_on(received)

    def _pass_on(self, received: ReceivedSignal) -> None:
        if received.from_terminal:
            return
        for pe in self._pes:
            pe.send_signal(received.number)

    # --- bootstrap

    def _accept(self) -> None:
        while (accepted := self._listener.accept()) is not None:
            connection = Connection(accepted)
            if connection.peer_uid != os.geteuid():
                self._say(f"refused a connection of user {connection.peer_uid} (pid {connection.peer_pid})")
                accepted.close()
                continue
            self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _read(self, connection: Connection) -> None:
        try:
            for frame in connection.receive():
                self._handle_frame(connection, frame)
        except ProtocolError as error:
            self._protocol_error(connection, str(error))
        if connection.at_end:
            self._disconnect(connection)

    def _watch(self, connection: Connection) -> None:
        if connection.at_end:
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.wants_to_write else 0)
        self._selector.modify(connection.socket, events, connection)

    def _disconnect(self, connection: Connection) -> None:
        if connection.socket.fileno() < 0:
            return
        connection.at_end = True
        self._selector.unregister(connection.socket)
        connection.socket.close()
        pe = connection.pe
        if pe is None:
            return
        pe.connected_pid = None
        if pe.running and pe.finished_code is None and not self._ending:
            self._hangups[pe.number] = time.monotonic() + HANGUP_S

    def _protocol_error(self, connection: Connection, problem: str) -> None:
        if connection.pe is not None:
            # A collective gone wrong names its PEs itself.
            self._end(problem if problem.startswith("PE ") else f"{connection.name}: {problem}", 1)
        elif not self._ending:
            self._say(f"refused {connection.name}: {problem}")
        connection.send(encode(FrameType.END, f"weft run refused this process: {problem}".encode()))
        self._disconnect(connection)

    def _handle_frame(self, connection: Connection, frame: Frame) -> None:
        if connection.pe is None:
            self._welcome(connection, frame)
            return
        pe = connection.pe
        if pe.finished_code is not None:
            raise ProtocolError(f"{pe.name} sent '{frame.type.name}' after it had finished")
        if frame.type in (FrameType.EXCHANGE, FrameType.BARRIER):
            if (answer := self._rendezvous.enter(pe.number, frame)) is not None:
                self._answer_all(answer)
        elif frame.type is FrameType.FINISHED:
            pe.finished_code = frame.integer()
            self._exit_code = self._exit_code or pe.finished_code & 0xFF
            self._rendezvous.finish(pe.number)
        elif frame.type is FrameType.ABORT:
            self._abort(pe, frame)
        else:
            raise ProtocolError(f"malformed frame: '{frame.type.name}' is not a PE's to send")

    def _welcome(self, connection: Connection, frame: Frame) -> None:
        if frame.type is not FrameType.HELLO or len(frame.payload) != 4:
            raise ProtocolError(
                f"malformed frame: '{frame.type.name}' of {len(frame.payload)} bytes instead of a hello"
            )
        number = frame.integer()
        if not 0 <= number < self._num_pes:
            raise ProtocolError(f"it says that it is PE {number} of {self._num_pes}; leave WEFT_PE alone")
        if number in self._connections:
            raise ProtocolError(
                f"PE {number} has joined already: a program that a PE starts must not use that PE's "
                "WEFT_BOOTSTRAP; unset it for that program"
            )
        pe = self._pes[number]
        connection.pe = pe
        pe.connected_pid = connection.peer_pid
        self._connections[number] = connection
        connection.send(encode(FrameType.WELCOME, self._num_pes.to_bytes(4, "little")))
        if len(self._connections) == self._num_pes:
            self._selector.unregister(self._listener.socket)
            self._listener.close()
        for other in self._pes:
            if not other.running and other.number not in self._connections:
                self._end(
                    f"{other.name} exited with code 0 without joining the job that PE {number} is in", 1
                )

    def _answer_all(self, answer: bytes) -> None:
        for connection in self._connections.values():
            connection.send(answer)
            self._watch(connection)

    def _abort(self, pe: Pe, frame: Frame) -> None:
        exit_code = frame.integer() & 0xFF or 1
        if self._ending:
            return
        message = frame.payload[4:].decode(errors="replace")
        if message:
            self._write(message if message.endswith("\n") else message + "\n")
        self._end(f"{pe.name} aborted with exit code {exit_code}", exit_code)

    # --- words

    def _say(self, sentence: str) -> None:
        self._write(f"weft run: {sentence}\n")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            pass  # nobody listens; the exit code says it too
