"""The jobs of this user on this host, and the samples of one of them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from weft._top.hosts import OtherHosts
from weft._top.memory import DeviceMemory
from weft._top.pages import DamagedPageError, Page, Source, close_all, find
from weft._top.samples import PeSample, Reading, at_start, sample

# PEs of other hosts answer within milliseconds, unless their host has much to do. If one has not answered,
# the next samples wait for a shorter time.
_ANSWER_S = 1.0
_SILENT_ANSWER_S = 0.25


@dataclass(frozen=True)
class JobInfo:
    """A job of this user on this host.

    `pids`: by PE, of those on this host. `others`: the PEs of other hosts that have answered.
    """

    job: str
    num_pes: int
    launcher_pid: int
    pids: dict[int, int]
    others: frozenset[int] = frozenset()

    @property
    def number(self) -> int:
        """The number by which a user names it: that of `weft run`, or of its first PE."""
        return self.launcher_pid or self.pids[min(self.pids)]

    def has_process(self, pid: int) -> bool:
        """Whether that is its launcher or one of its PEs."""
        return pid == self.launcher_pid or pid in self.pids.values()

    @property
    def missing(self) -> int:
        """How many PEs are not seen."""
        return self.num_pes - len(self.pids) - len(self.others)


class Watcher:
    """Reads the pages of one job again and again."""

    def __init__(self, job: str) -> None:
        self.job = job
        self.problems: list[str] = []  # of the last sample
        self._problems_found: list[str] = []
        self._sources: dict[int, Source] = {}  # by PE
        self._readings: dict[int, Reading] = {}
        self._others = OtherHosts(())
        self._other_readings: dict[int, Reading] = {}
        self._all_answer = True
        self._devices = DeviceMemory()
        self._look()

    def sample(self) -> list[PeSample]:
        """Of each PE that has a page, between the last call and this one. Empty: the job has ended.

        The first call returns what each PE did since its start.
        """
        if any(not source.is_alive for source in self._sources.values()) or not self._is_complete():
            self._look()
        self.problems = list(self._problems_found)
        before = self._readings
        self._readings = {}
        devices = self._devices.current()
        samples = []
        for pe, source in sorted(self._sources.items()):
            try:
                reading = Reading(source.read(), time.monotonic_ns())
            except DamagedPageError as problem:
                if not problem.is_harmless:
                    self.problems.append(str(problem))
                continue
            self._readings[pe] = reading
            samples.append(sample(before.get(pe, at_start(reading)), reading, devices.get(source.pid)))
        return samples + self._sample_others() if samples else []

    def _sample_others(self) -> list[PeSample]:
        """Of the PEs on other hosts that answer."""
        num_others = next(iter(self._readings.values())).page.num_pes - len(self._sources)
        if num_others == 0:
            return []
        asked_ns = time.monotonic_ns()
        answers = self._others.fetch(num_others, _ANSWER_S if self._all_answer else _SILENT_ANSWER_S)
        self.problems += self._others.problems
        silent: dict[str, list[int]] = {}
        samples = []
        for pe, answer in answers.items():
            reading = Reading(answer.page, answer.read_ns, answer.host, answer.resident_bytes)
            if answer.answered_ns < asked_ns:
                silent.setdefault(answer.host, []).append(pe)
                continue
            samples.append(sample(self._other_readings.get(pe, at_start(reading)), reading))
            self._other_readings[pe] = reading
        self._all_answer = len(samples) == num_others
        for host, pes in silent.items():
            seconds = (asked_ns - min(answers[pe].answered_ns for pe in pes)) / 1e9
            which = ", ".join(map(str, pes))
            self.problems.append(
                f"{host}: no answer for {seconds:.1f} s from PE {which}: it computes, or the first PE of "
                "this host does"
            )
        return samples

    @property
    def info(self) -> JobInfo | None:
        """Of what was read last."""
        info = next(iter(_jobs(reading.page for reading in self._readings.values())), None)
        return info and replace(info, others=frozenset(self._other_readings))

    def close(self) -> None:
        """Closes the pages."""
        close_all(self._sources.values())
        self._others.close()

    def _is_complete(self) -> bool:
        seen = len(self._sources) + len(self._other_readings)
        return any(seen == reading.page.num_pes for reading in self._readings.values())

    def _look(self) -> None:
        self.close()
        self._sources = {}
        self._problems_found = []
        for source in find():
            try:
                page = source.read()
            except DamagedPageError as problem:
                if not problem.is_harmless:
                    self._problems_found.append(str(problem))
                source.close()
                continue
            if page.job == self.job and page.pe not in self._sources:
                self._sources[page.pe] = source
            else:
                source.close()
        self._others = OtherHosts(source.pid for source in self._sources.values())


def jobs() -> tuple[list[JobInfo], list[str]]:
    """The jobs of this user on this host, and what is wrong with pages that cannot be read."""
    sources = find()
    found, problems = [], []
    for source in sources:
        try:
            found.append(source.read())
        except DamagedPageError as problem:
            if not problem.is_harmless:
                problems.append(str(problem))
    close_all(sources)
    return _jobs(found), problems


def _jobs(found: Iterable[Page]) -> list[JobInfo]:
    by_name: dict[str, list[Page]] = {}
    for page in found:
        by_name.setdefault(page.job, []).append(page)
    infos = (
        JobInfo(name, group[0].num_pes, group[0].launcher_pid, {page.pe: page.pid for page in group})
        for name, group in by_name.items()
    )
    return sorted(infos, key=lambda info: info.number)
