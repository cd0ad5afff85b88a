"""`weft run --timeout`: when a job has run too long, and where its PEs are then.

At the limit each Python PE writes the stacks of its threads into a file in memory that it shares with the
launcher. The PE needs no signal for this, so it also does so inside a loop or a call of C. The launcher reads
the files REPORT_S later, and ends the job.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping

# As timeout(1) of the GNU coreutils.
EXIT_CODE = 124
# The time of the PEs to write their stacks.
REPORT_S = 0.2
# In the environment of each PE: the time of the limit by the monotonic clock, and the descriptor of the file.
VARIABLE = "WEFT_TIME_LIMIT"
FILE_NAME = "weft-stacks"

_MOST_BYTES = 16 << 10
_HEADING = re.compile(r"^Thread 0x[0-9a-fA-F]+.*\n", re.MULTILINE)


class TimeLimit:
    """The limit of one job, which begins now."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at = time.monotonic() + seconds
        self._files: dict[int, int] = {}
        self.deadline: float | None = self._at + REPORT_S  # of the launcher; None when it has ended the job

    @property
    def reason(self) -> str:
        """Why the job ends."""
        return f"the job has run for {self._seconds:g} s, the limit of --timeout"

    def of_pe(self, number: int) -> tuple[str, tuple[int, ...]]:
        """The value of VARIABLE for a PE, and the descriptors that it inherits."""
        if (before := self._files.pop(number, None)) is not None:  # of a process that was lost
            os.close(before)
        fd = os.memfd_create(FILE_NAME)
        self._files[number] = fd
        return f"{self._at!r},{fd}", (fd,)

    def renumber(self, places: Mapping[int, int]) -> None:
        """`places` has the new number of each PE that is left."""
        for number in [number for number in self._files if number not in places]:
            os.close(self._files.pop(number))
        self._files = {places[number]: fd for number, fd in self._files.items()}

    def reports(self) -> Iterator[str]:
        """Says where the PEs are: those with equal stacks together, those that wrote none not at all."""
        pes_at: dict[str, list[int]] = {}
        for number, fd in self._files.items():
            if stacks := _without_addresses(os.pread(fd, _MOST_BYTES, 0).decode(errors="replace")):
                pes_at.setdefault(stacks, []).append(number)
        for stacks, numbers in pes_at.items():
            who = f"PE {', '.join(map(str, numbers))} {'is' if len(numbers) == 1 else 'are'}"
            yield f"{who} here (most recent call first):\n{stacks}"

    def close(self) -> None:
        """Closes the files."""
        for fd in self._files.values():
            os.close(fd)
        self._files.clear()


def _without_addresses(dump: str) -> str:
    """The text of faulthandler without its first line and what differs between processes."""
    stacks = dump.partition("\n")[2]
    return _HEADING.sub("" if len(_HEADING.findall(stacks)) == 1 else "Thread:\n", stacks)
