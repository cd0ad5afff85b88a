"""The remote shell of one host, and the messages with the agent behind it.

Threads: the launcher's. Nothing here blocks but `close`, and for a moment the end of the stream.
"""

from __future__ import annotations

import os
import selectors
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from weft.launch.command import UsageError
from weft.launch.hosts.link import (
    GREETING,
    GREETING_S,
    SILENCE_S,
    Decoder,
    Kind,
    LinkError,
    Outgoing,
    message,
)
from weft.launch.processes import describe_exit

#: The remote shell, a command to which a host and a command line are added.
SHELL_VARIABLE = "WEFT_REMOTE_SHELL"
_SHELL = "ssh -x -T -o BatchMode=yes -o ConnectTimeout=15"
_READ_BYTES = 256 << 10
_PACKAGES = Path(__file__).resolve().parents[3]
_AGENT = "import sys; sys.path.insert(0, {path!r}); from weft.launch.hosts.agent import main; main()"


class AgentLink:
    """Starts the remote shell of a host.

    Args:
        host: its name.
        selector: the launcher's.
        before_exec: runs in the shell's process between fork and exec.
        on_message: gets each message of the agent.
        on_end: gets the reason when nothing more will come. Called once, unless `close` was called before.
        on_words: gets what the shell and the agent write to stderr.

    Raises:
        UsageError: the shell cannot be started.
    """

    def __init__(
        self,
        host: str,
        selector: selectors.BaseSelector,
        *,
        before_exec: Callable[[], None],
        on_message: Callable[[Kind, int, bytes], None],
        on_end: Callable[[str], None],
        on_words: Callable[[bytes], None],
    ) -> None:
        self._selector = selector
        self._on_message = on_message
        self._on_end = on_end
        self._on_words = on_words
        self._decoder = Decoder(GREETING)
        self._outgoing = Outgoing()
        self.is_held = False
        self._heard_at = time.monotonic()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = self._start_shell(host, theirs, before_exec)
        self._socket.setblocking(False)
        selector.register(self._socket, selectors.EVENT_READ, self._on_stream)
        assert self._process.stderr is not None
        self._errors = self._process.stderr
        selector.register(self._errors, selectors.EVENT_READ, self._read_words)

    def _start_shell(
        self, host: str, stream: socket.socket, before_exec: Callable[[], None]
    ) -> subprocess.Popen[bytes]:
        agent = [sys.executable, "-c", _AGENT.format(path=str(_PACKAGES))]
        command = os.environ.get(SHELL_VARIABLE) or _SHELL
        try:
            return subprocess.Popen(
                [*shlex.split(command), host, f"exec {shlex.join(agent)}"],
                stdin=stream.fileno(),
                stdout=stream.fileno(),
                # Not the launcher's own: ssh may make its descriptor one that does not block.
                stderr=subprocess.PIPE,
                # Ctrl-C in a terminal is for the job, which ends the agent.
                start_new_session=True,
                preexec_fn=before_exec,
            )
        except (OSError, ValueError) as error:
            self._socket.close()
            raise UsageError(f"{command}: {error}; {SHELL_VARIABLE} is the command for ssh") from None

    @property
    def is_greeted(self) -> bool:
        """Whether the agent has spoken."""
        return self._decoder.is_greeted

    @property
    def is_open(self) -> bool:
        """Whether messages can still come."""
        return self._socket.fileno() >= 0

    @property
    def is_running(self) -> bool:
        """Whether the remote shell has not been reaped."""
        return self._process.returncode is None

    def reaped(self, pid: int, status: int) -> bool:
        """Whether the process that has ended is the remote shell."""
        if self._process.pid != pid:
            return False
        self._process.returncode = status
        return True

    def send(self, kind: Kind, number: int = 0, payload: bytes = b"") -> None:
        """Sends a message, now or later. Does nothing if the link has ended."""
        if self.is_open:
            self._outgoing.put(message(kind, number, payload))
            self._flush()

    def hold(self, is_held: bool) -> None:
        """The agent is not read from while what it sends cannot be passed on."""
        self.is_held = is_held
        self._heard_at = time.monotonic()
        if self.is_open:
            self._watch()

    def tick(self, now: float) -> None:
        """Sends a PING, or ends the link if the agent has been silent for too long."""
        if not self.is_open:
            return
        limit_s = SILENCE_S if self.is_greeted else GREETING_S
        if now - self._heard_at > limit_s and not self.is_held:
            self._process.kill()
            self._end(f"nothing was heard of it for {limit_s:g} s{self._what_it_said()}")
        elif self.is_greeted:
            self.send(Kind.PING)

    def forgive(self, now: float) -> None:
        """The launcher itself was stopped until now: silence before does not count."""
        self._heard_at = now

    def close(self, deadline: float) -> None:
        """Ends the agent; waits for its shell until the deadline, and kills it then."""
        self._close_socket()
        if not self.is_running:
            return
        try:
            self._process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _on_stream(self) -> None:
        if not self.is_open:
            return  # an event of before its end
        if len(self._outgoing) > 0:
            self._flush()
        if not self.is_held:
            self._read()

    def _flush(self) -> None:
        while len(self._outgoing) > 0:
            try:
                self._outgoing.taken(self._socket.send(self._outgoing.next_part(), socket.MSG_NOSIGNAL))
            except BlockingIOError:
                break
            except OSError:
                return  # its end is read
        self._watch()

    def _watch(self) -> None:
        events = 0 if self.is_held else selectors.EVENT_READ
        if len(self._outgoing) > 0:
            events |= selectors.EVENT_WRITE
        if self._socket in self._selector.get_map():
            self._selector.unregister(self._socket)
        if events:
            self._selector.register(self._socket, events, self._on_stream)

    def _read(self) -> None:
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end(self._how_shell_ended())
            return
        self._heard_at = time.monotonic()
        try:
            for kind, number, payload in self._decoder.feed(data):
                self._on_message(kind, number, payload)
        except LinkError as error:
            self._end(str(error))

    def _read_words(self) -> None:
        words = os.read(self._errors.fileno(), _READ_BYTES)
        if words:
            self._on_words(words)
        else:
            self._selector.unregister(self._errors)
            self._errors.close()

    def _how_shell_ended(self) -> str:
        try:
            status = self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            return "its connection has ended"
        return f"the remote shell {describe_exit(status)}{self._what_it_said()}"

    def _what_it_said(self) -> str:
        return f"; it said: {self._decoder.noise}" if self._decoder.noise else ""

    def _end(self, why: str) -> None:
        self._close_socket()
        self._on_end(why)

    def _close_socket(self) -> None:
        if not self.is_open:
            return
        if self._socket in self._selector.get_map():
            self._selector.unregister(self._socket)
        self._socket.close()
