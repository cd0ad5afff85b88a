"""One use of a pool: the tasks of a map, an imap or a submit, on the PE that asked for them."""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

from weft import _core
from weft._pool.members import Failure, Link, as_remote, in_task
from weft._support.remote_errors import made_again

#: The time that a chunk is to take if the program does not choose the chunks. Measured with empty tasks (two
#: cores, PEs on one host): a chunk costs 7 us on the caller's own PE and 14 us on another, beside 0.15 us per
#: task. 2 ms hide that, also where messages take ten times as long, and delay other work little.
CHUNK_S = 0.002
#: A chunk is at most this much larger than the largest before it: a few quick tasks say little about the
#: others.
GROWTH = 8
#: Chunks shorter than this may wait behind another one. A wait of 5 ms is not noticed beside longer tasks.
SHORT_S = 0.005
#: What a byte of a result counts in a task's time: a chunk of quick tasks with large results is small too.
S_PER_BYTE = 1e-9
#: Chunks of one job on their way, running or waiting, per PE of the pool; those that run have slots besides.
WINDOW = 8
#: Slots that one job asks for ahead, per PE of the pool.
ASKS = 2


class Job:
    """Sends the tasks as chunks to free members, and collects what comes back.

    After the first failure no further chunk is sent. The chunks on their way run to their end, and of several
    failures the one of the first task counts. `is_over` is set when nothing of the job runs any more.
    """

    def __init__(
        self,
        link: Link,
        members: dict[int, _core.ElementProxy],
        what: str,
        function: object,
        style: int,
        items: Iterable[Any],
        chunksize: int | None,
    ) -> None:
        self.parts: dict[int, list[Any]] = {}
        self.failure: tuple[int, Exception] | None = None  # the number of its chunk
        self.is_over = False
        #: Called when there is another part, or the job is over.
        self.changed: Callable[[], None] = lambda: None
        #: Whether parts count against the window until the program has taken them away.
        self.keeps_parts = False
        self._is_nested = in_task.get()
        self._link = link
        self._members = members
        self.what = what
        self._function = function
        self._style = style
        self._chunksize = chunksize
        self._left = len(items) if isinstance(items, Sized) else None
        self._items: Iterator[Any] = iter(items)
        self._is_exhausted = False
        self._has_ended = False
        self._asked = 0
        self._num_on_their_way = 0
        self._num_chunks = 0
        self._num_sent = 0
        self._num_ended = 0
        self._largest = 1
        self._seconds = 0.0

    def start(self) -> None:
        self._link.begin_job(self.fill, self._refuse)

    @property
    def waits_for_slots(self) -> bool:
        return self._num_sent == 0 and not self.is_over

    def replace_items(self, replace: Callable[[Any], Any]) -> None:
        """Of a job that has sent nothing yet."""
        self._items = iter([replace(item) for item in self._items])

    def abandon(self) -> None:
        """Sends no further chunk. The parts of those on their way are dropped."""
        self._is_exhausted = True
        self._items = iter(())
        self._end_if_over()

    def fill(self) -> None:
        """Asks for slots as far as there is work and room."""
        while not self._is_exhausted and self.failure is None and self._may_ask():
            self._asked += 1
            self._link.take(self._is_next_short(), self._is_nested, self._send)
        if self._num_on_their_way == 0:
            self._end_if_over()

    def _may_ask(self) -> bool:
        num_pes = len(self._members)
        asked = self._asked
        if asked == 0:
            is_wanted = True
        elif asked >= ASKS * num_pes:
            is_wanted = False
        else:
            is_wanted = self._left is None or asked * (self._chunksize or 1) < self._left
        kept = len(self.parts) if self.keeps_parts else 0
        return is_wanted and self._num_on_their_way + kept + asked < WINDOW * num_pes

    def _is_next_short(self) -> bool:
        return self._num_ended > 0 and self._next_size() * self._task_s() < SHORT_S

    def _is_done_sending(self) -> bool:
        return self._is_exhausted or self.failure is not None

    def _task_s(self) -> float:
        """How long a task takes on average; infinite before one has ended."""
        return self._seconds / self._num_ended if self._num_ended else math.inf

    def _next_size(self) -> int:
        if self._chunksize is not None:
            return self._chunksize
        if not self._num_ended:
            return 1
        size = min(CHUNK_S / max(self._task_s(), 1e-9), GROWTH * self._largest)
        if self._left is not None:  # smaller towards the end, so that all PEs end at about the same time
            size = min(size, self._left / (2 * len(self._members)))
        return max(1, int(size))

    def _send(self, token: int, pe: int) -> None:
        """Sends the next chunk to a member whose slot has been granted."""
        self._asked -= 1
        first, number = self._num_sent, self._num_chunks
        chunk: list[Any] = []
        if not self._is_done_sending():
            begin = time.perf_counter()
            size = self._next_size()
            try:
                chunk.extend(itertools.islice(self._items, size))
            except Exception as error:
                self._fail(
                    number, error, f"  in the iterable of {self.what}, after {first + len(chunk)} items\n"
                )
                chunk.clear()
            self._is_exhausted = self._is_exhausted or len(chunk) < size
        if chunk:
            self._num_sent += len(chunk)
            self._num_chunks += 1
            if self._left is not None:
                self._left = max(0, self._left - len(chunk))
                self._is_exhausted = self._is_exhausted or self._left == 0
            try:
                call = self._members[pe].run.call(
                    token, not self._link.is_local, self._function, self._style, _core._separate(chunk)
                )
            except Exception as error:
                self._fail(number, error, self._of_tasks(first, len(chunk), pe))
                chunk.clear()
            else:
                self._num_on_their_way += 1
                count = len(chunk)
                call.then(lambda call: self._receive(call, number, first, count, token, pe))
                self._seconds += time.perf_counter() - begin
        if not chunk:
            self._link.give(token)
        self.fill()

    def _receive(
        self, call: _core.Future[Any], number: int, first: int, count: int, token: int, pe: int
    ) -> None:
        gives = self._link.is_local
        try:
            results, failure, seconds = call.result()
        except Exception as error:  # the arguments or the results could not travel
            gives = True
            self._fail(number, error, self._of_tasks(first, count, pe))
        else:
            if failure is not None:
                self._fail_task(number, first, pe, failure)
            self._count(results, seconds)
            self.parts[number] = results
        self._num_on_their_way -= 1
        if gives:  # last, because it may send the next chunk or end the job
            self._link.give(token)
        self.fill()
        self.changed()

    def _count(self, results: list[Any], seconds: float) -> None:
        self._num_ended += len(results)
        if self._chunksize is not None:
            self._seconds += seconds
            return
        self._largest = max(self._largest, len(results))
        sample = results[:: len(results) // 8 + 1]
        num_bytes = sum(map(sys.getsizeof, sample)) * len(results) / max(1, len(sample))
        self._seconds += seconds + num_bytes * S_PER_BYTE

    def _of_tasks(self, first: int, count: int, pe: int) -> str:
        if count == 1:
            return f"  in task {first} of {self.what} on PE {pe}\n"
        return f"  in one of the tasks {first} to {first + count - 1} of {self.what} on PE {pe}\n"

    def _fail_task(self, number: int, first: int, pe: int, failure: Failure) -> None:
        offset, type_name, message, traceback_text, original, argument = failure
        remote = made_again(type_name, message, traceback_text, original)
        context = f"  in task {first + offset} of {self.what} on PE {pe}, whose argument is {argument}\n"
        self._fail(number, remote, context)

    def _fail(self, number: int, error: Exception, context: str) -> None:
        if self.failure is None or number < self.failure[0]:
            remote = as_remote(error)
            remote.traceback_text += context
            self.failure = (number, as_remote(remote))

    def _refuse(self, error: Exception) -> None:
        """The pool has been closed."""
        self.failure = (0, error)
        self.is_over = self._has_ended = True
        self.changed()

    def _end_if_over(self) -> None:
        if not self._is_done_sending() or self._num_on_their_way > 0:
            return
        was_over, self.is_over = self.is_over, True
        self._items = iter(())
        if self._asked == 0 and not self._has_ended:
            self._has_ended = True
            self._link.end_job()
        if not was_over:
            self.changed()
