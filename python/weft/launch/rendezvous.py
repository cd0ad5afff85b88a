"""The collective operations that the launcher serves: which PEs have entered, and the answer to all of them.

No sockets here: `service` feeds it frames and sends what it returns.
"""

from __future__ import annotations

import struct

from weft.launch.frames import Frame, FrameType, ProtocolError, encode

_COLLECTIVES = {FrameType.EXCHANGE: "an exchange", FrameType.BARRIER: "a barrier"}


class Rendezvous:
    """One collective at a time over all PEs; all of them have to enter the same one.

    A launch may have several jobs, one after the other. A PE that has finished a job may join the next one
    while others still finish the first.
    """

    def __init__(self, num_pes: int) -> None:
        self._num_pes = num_pes
        self._type: FrameType | None = None
        self._entered: dict[int, bytes] = {}
        # The number of the job that each PE is in, or has finished.
        self._jobs = [1] * num_pes
        self._finished: set[int] = set()
        self._gone: set[int] = set()
        self._lost: set[int] = set()

    def enter(self, pe: int, frame: Frame) -> bytes | None:
        """PE `pe` enters a collective. Returns the frame that answers every PE once the last has entered.

        Raises:
            ProtocolError: not what the other PEs are in, twice, or after a PE has finished.
        """
        name = _COLLECTIVES[frame.type]
        if self._type is not None and self._type != frame.type:
            other = min(self._entered)
            raise ProtocolError(
                f"PE {pe} entered {name} while PE {other} waits in {_COLLECTIVES[self._type]}: "
                "every PE has to enter the same collectives in the same order"
            )
        if pe in self._entered:
            raise ProtocolError(f"PE {pe} entered {name} twice before the others entered it once")
        other = min(self._entered, default=pe)
        if self._jobs[pe] != self._jobs[other]:
            raise ProtocolError(
                f"PE {pe} entered {name} of job {self._jobs[pe]} of this launch while PE {other} "
                f"waits in job {self._jobs[other]}: every PE has to run the same jobs"
            )
        if frame.type is FrameType.BARRIER and frame.payload:
            raise ProtocolError(f"malformed frame: a barrier of {len(frame.payload)} bytes")
        self._type = frame.type
        self._entered[pe] = frame.payload
        self._check_none_finished()
        return self._answer_if_complete()

    def lose(self, pe: int) -> bytes | None:
        """PE `pe` is lost: no one waits for it any more. Returns what `enter` returns, if the others wait.

        In an exchange its bytes are empty.
        """
        self._lost.add(pe)
        self._entered.pop(pe, None)
        if not self._entered:
            self._type = None
            return None
        return self._answer_if_complete()

    def _answer_if_complete(self) -> bytes | None:
        if len(self._entered.keys() | self._lost) < self._num_pes:
            return None
        answer = self._answer()
        self._type = None
        self._entered = {}
        return answer

    def finish(self, pe: int) -> None:
        """PE `pe` will enter no further collective of its job.

        Raises:
            ProtocolError: others wait for it in one.
        """
        self._finished.add(pe)
        self._check_none_finished()

    def join_next_job(self, pe: int) -> None:
        """PE `pe`, which has finished a job, is in the next one."""
        self._finished.discard(pe)
        self._jobs[pe] += 1

    def leave(self, pe: int) -> None:
        """PE `pe`, which has finished a job, will join no other one.

        Raises:
            ProtocolError: others wait for it in one.
        """
        self._gone.add(pe)
        self._check_none_finished()

    def _check_none_finished(self) -> None:
        if self._type is None:
            return
        waiting = min(self._entered)
        job = self._jobs[waiting]
        missing = sorted(pe for pe in self._finished if self._jobs[pe] >= job)
        if missing:
            raise ProtocolError(
                f"PE {waiting} waits in {_COLLECTIVES[self._type]} that PE {missing[0]}, "
                "which has finished, will never enter: every PE has to enter the same collectives"
            )
        if self._gone:
            gone = min(self._gone)
            raise ProtocolError(
                f"PE {waiting} is in job {job} of this launch, and PE {gone} has ended after job "
                f"{self._jobs[gone]}: every PE has to call weft.run equally often"
            )

    def _answer(self) -> bytes:
        if self._type is FrameType.BARRIER:
            return encode(FrameType.BARRIER_DONE)
        parts = [self._entered.get(pe, b"") for pe in range(self._num_pes)]
        sizes = struct.pack(f"<{len(parts)}Q", *map(len, parts))
        return encode(FrameType.EXCHANGED, sizes + b"".join(parts))
