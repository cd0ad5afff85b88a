"""What the launcher says of PEs whose time is over."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from weft.launch.time_limit import TimeLimit

DUMP = """\
Timeout (0:00:01)!
Thread 0x00007f{thread:04x}41 (most recent call first):
  File "app.py", line 7 in work
"""


@pytest.fixture
def limit() -> Iterator[TimeLimit]:
    """Of a job that just begins."""
    limit = TimeLimit(1)
    yield limit
    limit.close()


def test_pes_at_the_same_place_are_named_together(limit: TimeLimit) -> None:
    dumps = {
        0: DUMP.format(thread=1),
        1: DUMP.format(thread=2),
        2: "",
        3: DUMP.format(thread=3).replace("line 7", "line 8"),
    }
    for pe, dump in dumps.items():
        os.write(limit.of_pe(pe)[1][0], dump.encode())
    assert list(limit.reports()) == [
        'PE 0, 1 are here (most recent call first):\n  File "app.py", line 7 in work\n',
        'PE 3 is here (most recent call first):\n  File "app.py", line 8 in work\n',
    ]


def test_several_threads_are_told_apart(limit: TimeLimit) -> None:
    dump = DUMP.format(thread=1) + "\n" + DUMP.format(thread=2).partition("\n")[2]
    os.write(limit.of_pe(0)[1][0], dump.encode())
    (report,) = limit.reports()
    assert report.count("Thread:\n") == 2


def test_the_variable_has_the_time_and_the_file(limit: TimeLimit) -> None:
    text, (fd,) = limit.of_pe(0)
    at, number = text.split(",")
    assert int(number) == fd and float(at) < (limit.deadline or 0)
    assert os.readlink(f"/proc/self/fd/{fd}").startswith("/memfd:weft-stacks")
