"""Pages of PEs are claims: what cannot be is refused, and names what is wrong."""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from weft._top import pages
from weft._top.hosts import SLOT_BYTES, OtherHosts
from weft._top.jobs import Watcher, jobs
from weft._top.pages import PAGE_BYTES, DamagedPageError, ForeignPageError, Source, parse

# As in src/job/status/status_page.h.
VERSION, SIZE, PID, PE, NUM_PES, JOB, SEQUENCE, NUM_ROWS, ROWS = 8, 12, 16, 20, 24, 32, 168, 264, 272

# As in src/job/status/other_hosts.h.
HEAD_BYTES = 24
FRONT = struct.Struct("=QqqQ64s")
NOW = 1 << 62  # later than each question: the answer has come already


def page(**changes: int | bytes) -> bytearray:
    """The page of PE 1 of 2, of this process, with one row; `changes` by offset, as o24=..."""
    data = bytearray(PAGE_BYTES)
    struct.pack_into("=8sIIiiii128sq", data, 0, b"weft-pe\0", 1, PAGE_BYTES, os.getpid(), 1, 2, 77, b"job", 5)
    struct.pack_into("=Q5q7Q", data, SEQUENCE, 4, 50, 10, 0, 3, 50, 1, 2, 3, 4, 0, 0, 1)
    struct.pack_into("=20s16s12sQQ", data, ROWS, b"put", b"through UCX", b"host", 6, 7)
    for name, value in changes.items():
        offset = int(name[1:])
        if isinstance(value, bytes):
            data[offset : offset + len(value)] = value
        else:
            struct.pack_into("=q" if offset >= SEQUENCE else "=i", data, offset, value)
    return data


def test_a_right_page() -> None:
    read = parse(bytes(page()), os.getpid())
    assert (read.pe, read.num_pes, read.launcher_pid, read.job) == (1, 2, 77, "job")
    assert (read.idle_ns, read.communication_ns, read.handled, read.queued) == (10, 3, 2, 3)
    (row,) = read.transfers
    assert (row.type, row.path, row.memory, row.messages, row.bytes) == ("put", "through UCX", "host", 6, 7)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"o0": b"weft-xx\0"}, "none of this version"),
        ({f"o{VERSION}": 2}, "none of this version"),
        ({f"o{SIZE}": 64}, "none of this version"),
        ({f"o{PE}": 2}, "holds what cannot be"),
        ({f"o{PE}": -1}, "holds what cannot be"),
        ({f"o{NUM_PES}": 2_000_000_000}, "holds what cannot be"),
        ({f"o{NUM_ROWS}": 65}, "holds what cannot be"),
        ({f"o{NUM_ROWS}": -1}, "holds what cannot be"),
        ({f"o{SEQUENCE + 16}": -1}, "holds what cannot be"),
    ],
)
def test_a_damaged_page(changes: dict[str, int | bytes], problem: str) -> None:
    with pytest.raises(DamagedPageError, match=problem):
        parse(bytes(page(**changes)), os.getpid())


def test_a_page_that_is_not_filled_yet() -> None:
    with pytest.raises(ForeignPageError, match="starts"):
        parse(bytes(page(o0=bytes(8))), os.getpid())


def test_the_page_of_a_process_that_forked() -> None:
    with pytest.raises(ForeignPageError, match=f"forked by the PE that is process {os.getppid()}"):
        parse(bytes(page(**{f"o{PID}": os.getppid()})), os.getpid())


def test_texts_do_not_act_on_a_terminal() -> None:
    changes = {f"o{JOB}": b"\x1b[2Jjob\xff\0", f"o{ROWS + 20}": b"\x1b" + b"x" * 15}
    read = parse(bytes(page(**changes)), os.getpid())
    assert read.job == "?[2Jjob�"
    assert read.transfers[0].path == "?" + "x" * 15


class File:
    """A page in shared memory, as a PE has it."""

    def __init__(self, data: bytes) -> None:
        self.fd = os.memfd_create("weft-status")
        self.write(data)

    def write(self, data: bytes) -> None:
        os.ftruncate(self.fd, len(data))
        os.pwrite(self.fd, data, 0)

    def source(self) -> Source:
        return Source(os.getpid(), f"/proc/self/fd/{self.fd}")


@pytest.fixture
def file() -> Iterator[File]:
    one = File(bytes(page()))
    yield one
    os.close(one.fd)


def test_a_file_of_another_size(file: File) -> None:
    source = file.source()
    assert source.read().pe == 1
    file.write(bytes(10))
    with pytest.raises(DamagedPageError, match="none of this version"):
        source.read()
    source.close()


def test_a_file_without_its_size(file: File) -> None:
    file.write(b"")
    source = file.source()
    with pytest.raises(ForeignPageError, match="starts"):
        source.read()
    source.close()


def test_a_page_that_is_written_for_ever(file: File) -> None:
    file.write(bytes(page(**{f"o{SEQUENCE}": 5})))
    source = file.source()
    with pytest.raises(DamagedPageError, match="being written"):
        source.read()
    source.close()


def test_what_is_found(file: File) -> None:
    file.write(bytes(page(**{f"o{JOB}": b"of this test"})))
    found, _ = jobs()
    (mine,) = (info for info in found if info.job == "of this test")
    assert (mine.pids, mine.number, mine.missing) == ({1: os.getpid()}, 77, 1)
    watcher = Watcher("of this test")
    assert [one.pe for one in watcher.sample()] == [1]
    file.write(bytes(page(**{f"o{NUM_ROWS}": 1 << 40})))
    assert watcher.sample() == []
    assert any("holds what cannot be" in problem for problem in watcher.problems)
    watcher.close()


def test_a_problem_is_named_once(file: File) -> None:
    """A PE that is stopped while it writes, and one that goes on: the job is looked for once."""
    changes = {f"o{JOB}": b"of this test"}
    file.write(bytes(page(**changes)))
    other = File(bytes(page(**changes, **{f"o{PE}": 0})))
    watcher = Watcher("of this test")
    assert len(watcher.sample()) == 2
    file.write(bytes(page(**changes, **{f"o{SEQUENCE}": 5})))
    for _ in range(3):
        assert [one.pe for one in watcher.sample()] == [0]
        assert sum(f"process {os.getpid()}: its page is being" in one for one in watcher.problems) == 1
    file.write(bytes(page(**changes)))
    assert len(watcher.sample()) == 2
    assert not any(f"process {os.getpid()}:" in one for one in watcher.problems)
    watcher.close()
    os.close(other.fd)


def test_the_layout_is_that_of_the_pes() -> None:
    assert PAGE_BYTES == 4368, "the static_assert of status_page.h has the same number"
    assert pages.VERSION == 1


# --- Pages of other hosts, as the first PE of this host has them


class Others:
    """The file of the first PE of this host, PE 1 of 2, with what PE 0 on nodeB said."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("weft-others")
        self.ends = os.pipe()
        os.ftruncate(self.fd, HEAD_BYTES + 2 * SLOT_BYTES)
        os.pwrite(
            self.fd, struct.pack("=8sIIii", b"weft-oh\0", pages.VERSION, SLOT_BYTES, 2, self.ends[1]), 0
        )

    def say(self, answered_ns: int, sequence: int = 2, read_ns: int = 100, **changes: int | bytes) -> None:
        front = FRONT.pack(sequence, answered_ns, read_ns, 4096, b"nodeB\x1b\0")
        os.pwrite(self.fd, front + page(**{f"o{PE}": 0, **changes}), HEAD_BYTES)

    def close(self) -> None:
        for fd in (self.fd, *self.ends):
            os.close(fd)


@pytest.fixture
def others() -> Iterator[Others]:
    one = Others()
    yield one
    one.close()


@pytest.fixture
def fetch() -> Iterator[Callable[[], tuple]]:
    """fetch(): the answers and the problems."""
    opened = []

    def ask() -> tuple:
        opened.append(OtherHosts([os.getpid()]))
        return opened[-1].fetch(1, 0.1), opened[-1].problems

    yield ask
    for one in opened:
        one.close()


def test_an_answer(others: Others, fetch: Callable[[], tuple]) -> None:
    others.say(NOW)
    answers, problems = fetch()
    assert (answers[0].host, answers[0].resident_bytes, answers[0].page.handled) == ("nodeB?", 4096, 2)
    assert (len(answers), problems) == (1, [])
    assert os.read(others.ends[0], 10) == b"?"


def test_no_answer(others: Others, fetch: Callable[[], tuple]) -> None:
    assert fetch() == ({}, [])


@pytest.mark.parametrize("changes", [{f"o{PE}": 1}, {f"o{NUM_ROWS}": 65}, {"read_ns": -1}, {"o24": 3}])
def test_a_claim_that_cannot_be(others: Others, fetch: Callable[[], tuple], changes: dict) -> None:
    others.say(NOW, **changes)
    assert fetch() == ({}, ["PE 0 on nodeB?: its page holds what cannot be"])


def test_a_slot_that_is_being_written(others: Others, fetch: Callable[[], tuple]) -> None:
    others.say(NOW, sequence=3)
    assert fetch() == ({}, [])


def test_a_file_of_slots_of_another_size(others: Others, fetch: Callable[[], tuple]) -> None:
    others.say(NOW)
    os.ftruncate(others.fd, HEAD_BYTES + SLOT_BYTES)
    assert fetch() == ({}, [])


def test_a_pe_that_answers_no_more_is_named(others: Others) -> None:
    job = f"two hosts of {os.getpid()}"
    mine = File(bytes(page(**{f"o{JOB}": job.encode()})))
    others.say(NOW)
    watcher = Watcher(job)
    assert [(one.pe, one.host) for one in watcher.sample()] == [(1, None), (0, "nodeB?")]
    assert watcher.info is not None and watcher.info.missing == 0
    others.say(time.monotonic_ns() - 3_000_000_000)
    assert [one.pe for one in watcher.sample()] == [1]
    (problem,) = (one for one in watcher.problems if "nodeB" in one)
    silent = re.match(r"nodeB\?: no answer for (\d+\.\d) s from PE 0:", problem)
    assert silent is not None and float(silent[1]) >= 3, problem
    watcher.close()
    os.close(mine.fd)


def test_the_layout_of_the_slots_is_that_of_the_pes() -> None:
    assert SLOT_BYTES == 4464 == FRONT.size + PAGE_BYTES, "the static_assert of other_hosts.h has the number"
