"""Signals as events with their sender, and the few process calls that the standard library does not offer."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_SIGSET_BYTES = 128
_SIGINFO_BYTES = 128
_SIGINFO_HEAD = struct.Struct("=IiiII")  # signo, errno, code, pid, uid
_SFD_NONBLOCK_CLOEXEC = 0o2004000
_SI_KERNEL = 0x80
_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class ReceivedSignal:
    """One signal; `from_terminal` when the kernel sent it: to the whole foreground group, PEs included.

    SIGHUP may go to the leader of the session alone.
    """

    number: signal.Signals
    from_terminal: bool


class SignalFd:
    """A file descriptor from which signals are read, for a selector.

    They stay blocked, after `close` too: one that comes while the job ends must not change how it ends.
    """

    def __init__(self, numbers: Iterable[signal.Signals]) -> None:
        numbers = set(numbers)
        self.previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        mask = ctypes.create_string_buffer(_SIGSET_BYTES)
        _libc.sigemptyset(mask)
        for number in numbers:
            _libc.sigaddset(mask, int(number))
        self._fd: int = _libc.signalfd(-1, mask, _SFD_NONBLOCK_CLOEXEC)
        if self._fd < 0:
            error = ctypes.get_errno()
            self.restore_mask()
            raise OSError(error, f"signalfd: {os.strerror(error)}")

    def fileno(self) -> int:
        """The file descriptor to wait on."""
        return self._fd

    def read(self) -> Iterator[ReceivedSignal]:
        """Yields the signals that have arrived. Does not block."""
        while True:
            try:
                data = os.read(self._fd, _SIGINFO_BYTES)
            except BlockingIOError:
                return
            number, _, code, _, _ = _SIGINFO_HEAD.unpack_from(data)
            yield ReceivedSignal(signal.Signals(number), from_terminal=code == _SI_KERNEL)

    def restore_mask(self) -> None:
        """Unblocks the signals again; safe between fork and exec."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self.previous_mask)

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self._fd)


def handles(pid: int, number: int) -> bool:
    """Whether the process handles, blocks or ignores that signal. False if there is no such process."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            masks = dict(
                line.split(":", 1) for line in status if line.startswith(("SigBlk:", "SigIgn:", "SigCgt:"))
            )
    except OSError:
        return False
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks.values())


def die_with_parent(parent_pid: int) -> None:
    """Asks the kernel to kill this process when its parent dies. For use between fork and exec."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)
