"""The launcher's side of the bootstrap: the connections of the PEs and what they ask for.

What concerns the life of the job goes to its owner as `Events`.
"""

from __future__ import annotations

import os
import selectors
import struct
from collections.abc import Mapping, Sequence
from typing import Protocol

from weft.launch.connection import Connection, SocketConnection
from weft.launch.frames import NO_PE, Frame, FrameType, ProtocolError, encode
from weft.launch.listener import Listener
from weft.launch.losses.recovery import Recovery
from weft.launch.losses.survival import Survival
from weft.launch.processes import Pe
from weft.launch.rendezvous import Rendezvous


class Events(Protocol):
    """The events that a service reports to its owner."""

    def joined(self, pe: Pe) -> None:
        """A PE has connected."""

    def joined_again(self, pe: Pe) -> None:
        """A PE has begun its job again."""

    def stopped(self, pe: Pe) -> None:
        """A PE that begins its job again in a new program has ended the one before."""

    def protected(self, number: int, plan: int) -> None:
        """All PEs have protected a state of that number, for a plan of another number of PEs or 0."""

    def asked_for_resize(self, pe: Pe | None, num_pes: int) -> str | None:
        """A PE or another process asks for so many PEs; 0: without that PE. Returns why it is refused."""

    def cannot_resize(self, number: int, why: str) -> None:
        """What is protected cannot be restored on the number of PEs of that plan."""

    def joined_next_job(self, pe: Pe) -> None:
        """A PE that had finished a job is in another one; `finished_code` is None again."""

    def finished(self, pe: Pe) -> None:
        """A PE has said that it is done; `finished_code` is set."""

    def aborted(self, pe: Pe, exit_code: int, message: str) -> None:
        """A PE wants the job to end, and why."""

    def asked_for_job(self, pe: Pe, request: bytes) -> None:
        """A PE asks for another job, see mpi/spawned.py."""

    def hung_up(self, pe: Pe) -> None:
        """The connection of a PE has closed before it was done."""

    def broke_protocol(self, problem: str) -> None:
        """A PE sent a frame that is not allowed at that time; the sentence names the PE."""

    def refused(self, problem: str) -> None:
        """A process that is no PE of this job was refused."""


class BootstrapService:
    """Serves `pes`, which is complete before the first of them is served, on the owner's selector."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        num_pes: int,
        pes: Sequence[Pe],
        events: Events,
        recovery: Recovery | None = None,
        survival: Survival | None = None,
    ) -> None:
        self._selector = selector
        self._num_pes = num_pes
        self._pes = pes
        self._events = events
        self._recovery = recovery
        self._survival = survival
        self._connections: dict[int, Connection] = {}
        # Of processes that leave, and may still write into memory of others. Until they are gone the PEs wait
        # with their next incarnation.
        self._departing: list[Connection] = []
        self._held_hellos: list[tuple[Connection, Frame]] = []
        self._stopped: list[Connection] = []  # wait for the others to stop
        self._rendezvous = Rendezvous(num_pes)
        self._listener = Listener(backlog=num_pes)
        self.path = self._listener.path
        selector.register(self._listener.socket, selectors.EVENT_READ, self._accept)

    @property
    def connections(self) -> Mapping[int, Connection]:
        """The connections by PE, closed ones included."""
        return self._connections

    @property
    def busy(self) -> list[int]:
        """The PEs that have joined, and are not beginning in new programs."""
        return [number for number, each in self._connections.items() if not each.is_beginning]

    @property
    def missing(self) -> list[int]:
        """The PEs that are not in the present incarnation yet."""
        connections = self._connections
        return [n for n in range(self._num_pes) if n not in connections or connections[n].is_leaving]

    @property
    def can_begin_again(self) -> bool:
        """Whether the programs of all PEs that have joined can begin again, and none is in a further job."""
        return self._recovery is not None and all(
            connection.is_able for connection in self._connections.values()
        )

    @property
    def is_complete(self) -> bool:
        """Whether all PEs are in the present incarnation."""
        connections = self._connections.values()
        return len(connections) == self._num_pes and not any(each.is_leaving for each in connections)

    def begin_again(
        self, lost: Sequence[Pe], leaving: Sequence[Pe], num_pes: int, incarnation: int, why: str
    ) -> None:
        """Tells all PEs but the lost ones, whose connections are closed, to begin the job again, or to leave.

        The other PEs have their new numbers already.
        """
        connections = list(self._connections.values())
        self._connections.clear()
        self._held_hellos.clear()
        self._stopped.clear()
        self._num_pes = num_pes
        self._rendezvous = Rendezvous(num_pes)
        for connection in connections:
            pe = connection.pe
            if pe is None or any(pe is other for other in lost):
                self._close(connection)
                continue
            number = pe.number
            if any(pe is other for other in leaving):
                self._departing.append(connection)
                number = NO_PE
            else:
                self._connections[number] = connection
            connection.is_leaving = True
            self._send_begin_again(connection, incarnation, number, why)

    def _send_begin_again(self, connection: Connection, incarnation: int, number: int, why: str) -> None:
        connection.has_stopped = False
        numbers = struct.pack("<III", incarnation, number, self._num_pes)
        connection.send(encode(FrameType.BEGIN_AGAIN, numbers + why.encode()))
        self._watch(connection)

    def tell_plan(self, number: int, num_pes: int, leaving: Sequence[int]) -> None:
        """Tells all PEs which of them will leave. `number` 0: none, the plan before is withdrawn."""
        payload = struct.pack(f"<{2 + len(leaving)}I", number, num_pes, *leaving)
        for connection in self._connections.values():
            connection.send(encode(FrameType.RESIZE_PLAN, payload))
            self._watch(connection)

    def has_left(self, pe: Pe) -> None:
        """The process of a PE that leaves has ended."""
        for connection in [each for each in self._departing if each.pe is pe]:
            self._disconnect(connection)

    def lose(self, lost: int, why: str) -> None:
        """Tells all other PEs that one is lost, whose connection is closed. They go on."""
        self._close(self._connections[lost])
        frame = encode(FrameType.LOST, lost.to_bytes(4, "little") + why.encode())
        self._answer_all(frame)
        if (answer := self._rendezvous.lose(lost)) is not None:
            self._answer_all(answer)

    def handle(self, connection: SocketConnection, events: int) -> None:
        """Handles the events that the selector reports for a connection."""
        if events & selectors.EVENT_WRITE:
            connection.flush()
            self._watch(connection)
        if events & selectors.EVENT_READ:
            self.read(connection)

    def read(self, connection: Connection) -> None:
        """Handles what has arrived on a connection."""
        try:
            for frame in connection.receive():
                self._handle_frame(connection, frame)
        except ProtocolError as error:
            self._protocol_error(connection, str(error))
        if connection.at_end:
            self._disconnect(connection)

    def expect_no_next_job(self, pe: Pe) -> None:
        """A PE that has finished a job has left: the launch ends if others wait for it in the next one."""
        try:
            self._rendezvous.leave(pe.number)
        except ProtocolError as error:
            self._events.broke_protocol(str(error))

    def end(self, reason: str) -> None:
        """Sends every PE the reason for which the job ends."""
        for connection in self._connections.values():
            connection.send(encode(FrameType.END, reason.encode()))
            self._watch(connection)

    def close(self) -> None:
        """Closes all sockets and removes the listener's directory."""
        self._listener.close()
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, Connection):
                key.data.close(self._selector)

    def _accept(self) -> None:
        while (accepted := self._listener.accept()) is not None:
            connection = SocketConnection(accepted)
            if connection.peer_uid != os.geteuid():
                self._events.refused(
                    f"{connection.name} of user {connection.peer_uid}: not the user of this job"
                )
                accepted.close()
                continue
            self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _watch(self, connection: Connection) -> None:
        connection.watch(self._selector)

    def _disconnect(self, connection: Connection) -> None:
        pe = connection.pe
        if not self._close(connection) or pe is None:
            return
        if connection in self._departing:
            self._departing.remove(connection)
            self._answer_held_hellos()
            self._answer_stopped()
            return
        pe.connected_pid = None
        if pe.finished_code is None:
            self._events.hung_up(pe)
        else:
            self.expect_no_next_job(pe)

    def _close(self, connection: Connection) -> bool:
        """Returns False if it is closed already."""
        if not connection.is_open:
            return False
        connection.close(self._selector)
        return True

    def _protocol_error(self, connection: Connection, problem: str) -> None:
        connection.send(encode(FrameType.END, f"weft run refused this process: {problem}".encode()))
        if connection.pe is None:
            self._events.refused(f"{connection.name}: {problem}")
        else:
            # The sentence about a collective names its PEs already.
            self._events.broke_protocol(
                problem if problem.startswith("PE ") else f"{connection.name}: {problem}"
            )
        self._disconnect(connection)

    def _handle_frame(self, connection: Connection, frame: Frame) -> None:
        pe = connection.pe
        if pe is None:
            self._welcome(connection, frame)
            return
        if connection in self._departing:
            return
        if pe.finished_code is not None:
            self._join_next_job(connection, pe, frame)
            return
        if connection.is_leaving and not self._leaves(connection, pe, frame):
            return
        if frame.type in (FrameType.EXCHANGE, FrameType.BARRIER):
            if (answer := self._rendezvous.enter(pe.number, frame)) is not None:
                self._answer_all(answer)
        elif frame.type is FrameType.FINISHED:
            pe.finished_code = frame.integer() & 0xFF
            if self._survival is not None:
                self._survival.leave(pe.number)
            self._events.finished(pe)
            self._rendezvous.finish(pe.number)
        elif frame.type is FrameType.ABORT:
            # An aborted job never ends with exit code 0.
            self._events.aborted(pe, frame.integer() & 0xFF or 1, frame.payload[4:].decode(errors="replace"))
        elif frame.type is FrameType.START_JOB:
            self._events.asked_for_job(pe, frame.payload)
        elif frame.type is FrameType.PROTECTED and len(frame.payload) == 12:
            self._events.protected(int.from_bytes(frame.payload[:8], "little"), frame.number(8))
        elif frame.type is FrameType.RESIZE and len(frame.payload) == 4:
            refusal = self._events.asked_for_resize(pe, frame.number(0))
            if frame.number(0) != 0:
                self._answer_resize(connection, refusal)
        elif frame.type is FrameType.CANNOT_RESIZE and len(frame.payload) >= 4:
            self._events.cannot_resize(frame.number(0), frame.payload[4:].decode(errors="replace"))
        elif frame.type is FrameType.OUTLIVES and self._survival is not None:
            self._survival.outlives(pe.number, may_lose_pe_0=frame.integer() != 0)
        else:
            raise ProtocolError(f"malformed frame: a PE does not send '{frame.type.name}'")

    def _answer_resize(self, connection: Connection, refusal: str | None) -> None:
        connection.send(encode(FrameType.RESIZE_ANSWER, (refusal or "").encode()))
        self._watch(connection)

    def _welcome(self, connection: Connection, frame: Frame) -> None:
        if frame.type is FrameType.RESIZE and len(frame.payload) == 4:  # of `weft resize`
            self._answer_resize(connection, self._events.asked_for_resize(None, frame.number(0)))
            return
        if frame.type is not FrameType.HELLO or len(frame.payload) not in (4, 8):
            raise ProtocolError(
                f"malformed frame: '{frame.type.name}' of {len(frame.payload)} bytes instead of a hello"
            )
        number = frame.integer()
        pe = self._pe_started_as(number, frame.number(4) if len(frame.payload) == 8 else None)
        if pe.number in self._connections:
            raise ProtocolError(
                f"PE {number} has joined already, and one launch is one Weft job: for a second program start "
                "`weft run` again; set WEFT_BOOTSTRAP=singleton for a program that a PE starts"
            )
        connection.pe = pe
        pe.connected_pid = connection.peer_pid
        self._connections[pe.number] = connection
        connection.is_able = len(frame.payload) == 8
        self._answer_hello(connection, frame)
        if len(self._connections) == self._num_pes and self._recovery is None:
            # No other process may join. A launcher that is killed from now on leaves no socket behind.
            self._selector.unregister(self._listener.socket)
            self._listener.close()
        self._events.joined(pe)

    def _pe_started_as(self, number: int, incarnation: int | None) -> Pe:
        """The PE whose process has that number in its environment. It may have another one now."""
        started = [pe for pe in self._pes if pe.started_as == number]
        if not started:
            raise ProtocolError(f"it says that it is PE {number} of {self._num_pes}; do not set WEFT_PE")
        for pe in started:
            if incarnation is None or pe.incarnation == incarnation:
                return pe
        raise ProtocolError(f"it belongs to a process of PE {number} that was lost")

    def _answer_held_hellos(self) -> None:
        if self._departing:
            return
        held, self._held_hellos = self._held_hellos, []
        for connection, hello in held:
            self._answer_hello(connection, hello)
            self._watch(connection)

    def _answer_hello(self, connection: Connection, hello: Frame) -> None:
        welcome = self._num_pes.to_bytes(4, "little")
        if len(hello.payload) == 8:
            recovery = self._recovery or Recovery()
            if hello.number(4) < recovery.incarnation:
                # It was started, or told, before a further loss.
                connection.is_leaving = True
                number = connection.pe.number if connection.pe is not None else NO_PE
                self._send_begin_again(connection, recovery.incarnation, number, "the job has begun again")
                return
            if self._departing:
                self._held_hellos.append((connection, hello))
                return
            welcome += recovery.newest_protected.to_bytes(8, "little")
        connection.send(encode(FrameType.WELCOME, welcome))

    def _leaves(self, connection: Connection, pe: Pe, frame: Frame) -> bool:
        """Handles a frame of a PE that has been told to begin again. Returns whether it counts as usual.

        What the PE has sent before it was told belongs to the incarnation that has ended. A hello of an
        earlier incarnation has crossed the word of a further loss, which the PE reads next.
        """
        if frame.type in (FrameType.FINISHED, FrameType.PROTECTED):
            return True
        if frame.type is FrameType.RESIZE and frame.number(0) == 0:
            return True  # it concerns the process, not the incarnation
        present = None if self._recovery is None else self._recovery.incarnation
        is_stopped = frame.type is FrameType.STOPPED and len(frame.payload) == 4
        if is_stopped and frame.number(0) == present and not connection.has_stopped:
            connection.has_stopped = connection.is_beginning = True
            self._stopped.append(connection)
            self._events.stopped(pe)
            self._answer_stopped()
        is_hello = frame.type is FrameType.HELLO and len(frame.payload) == 8
        if is_hello:
            connection.is_beginning = False
        if is_hello and frame.number(4) == present:
            connection.is_leaving = False
            self._answer_hello(connection, frame)
            self._events.joined_again(pe)
            self._answer_stopped()
        return False

    def _answer_stopped(self) -> None:
        """Answers the PEs that have stopped, when no process may write into the memory of another one."""
        leaving = (each for each in self._connections.values() if each.is_leaving)
        if self._recovery is None or self._departing or not all(each.has_stopped for each in leaving):
            return
        if self._stopped:
            self._recovery.all_stopped()
        answer = encode(FrameType.ALL_STOPPED, struct.pack("<I", self._recovery.incarnation))
        for connection in self._stopped:
            connection.send(answer)
            self._watch(connection)
        self._stopped.clear()

    def _join_next_job(self, connection: Connection, pe: Pe, frame: Frame) -> None:
        """A process that has finished a job may run another one, over the connection that it has."""
        if frame.type is not FrameType.HELLO:
            raise ProtocolError(f"{pe.name} sent '{frame.type.name}' after it had finished")
        if frame.integer() != pe.number:
            raise ProtocolError(f"{pe.name} says that it is PE {frame.integer()}; do not set WEFT_PE")
        if self._survival is not None and self._survival.lost:
            lost = min(self._survival.lost)
            raise ProtocolError(
                f"{pe.name} begins a further job of this launch, which has lost PE {lost}: start the "
                "further job with another `weft run`"
            )
        pe.finished_code = None
        for each in self._connections.values():
            each.is_able = False  # a process in the place of a lost one would begin with the first job
        self._rendezvous.join_next_job(pe.number)
        self._answer_hello(connection, frame)
        self._events.joined_next_job(pe)

    def _answer_all(self, answer: bytes) -> None:
        for connection in self._connections.values():
            connection.send(answer)
            self._watch(connection)
