"""The trials of a study: in random order within a group, each a fresh job."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import json
import math
import random
import re
from collections.abc import Callable
from typing import Any

from weft_bench.errors import BenchError
from weft_bench.launches import Launches, Stopped
from weft_bench.process import capture, tail
from weft_bench.programs import Programs
from weft_bench.study.plan import Group, Study, Variant, label_of
from weft_bench.study.trials import Trial, TrialFile

#: A launch that takes longer hangs.
TIMEOUT_S = 900.0
METRIC = "time_s"

#: What a program has said: the seconds, and its other fields.
Reading = tuple[float, dict[str, Any]]
Launch = Callable[[Group, Variant], Reading]


@dataclasses.dataclass
class Outcome:
    """Why trials are missing: variants that are absent or failed (label -> why), and an early end."""

    absent: dict[str, str] = dataclasses.field(default_factory=dict)
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    stopped: str = ""


def order_of(group: Group, trials: int, seed: int) -> list[tuple[Variant, int]]:
    """The trials of a group, numbered from 0 for each variant, in the order that `seed` decides."""
    order = [(variant, number) for number in range(trials) for variant in group.variants]
    random.Random(f"{seed} {group.name}").shuffle(order)
    return order


def run_study(
    study: Study,
    file: TrialFile,
    programs: Programs,
    launches: Launches,
    launch: Launch | None = None,
    when_group_ends: Callable[[], None] = lambda: None,
) -> Outcome:
    """Makes the trials that `file` lacks, group after group.

    A variant that has trials to make begins with the warm-up launches of the study, which are not counted. A
    variant that fails once is run no further in its group; the others go on.
    """
    launch = launch or functools.partial(launch_program, programs=programs)
    outcome = Outcome()
    done = {trial.key for trial in file.trials}
    planned = []
    for group in study.groups:
        missing = [
            (v, n)
            for v, n in order_of(group, study.trials, file.header.seed)
            if (group.name, v.name, n) not in done
        ]
        for variant in dict.fromkeys(variant for variant, _ in missing):
            if (why := variant.absent(programs)) is not None:
                outcome.absent[label_of(group, variant)] = why
        planned.append((group, [(v, n) for v, n in missing if label_of(group, v) not in outcome.absent]))
    launches.teller.expect(
        sum(len(order) + study.warmup * len({v for v, _ in order}) for _, order in planned)
    )
    try:
        for group, order in planned:
            if order:
                _run_group(group, order, study.warmup, file, launches, launch, outcome)
                when_group_ends()
    except Stopped as stopped:
        outcome.stopped = str(stopped)
    return outcome


def _run_group(
    group: Group,
    order: list[tuple[Variant, int]],
    warmup: int,
    file: TrialFile,
    launches: Launches,
    launch: Launch,
    outcome: Outcome,
) -> None:
    results = {trial.fields.get("checksum") for trial in file.trials if trial.group == group.name}

    def run(variant: Variant, what: str) -> Reading | None:
        label = label_of(group, variant)
        if label in outcome.failed:
            return None
        try:
            reading = launches.run(f"{label}, {what}", functools.partial(launch, group, variant))
            _expect_same_result(reading, results, label)
            return reading
        except BenchError as error:
            outcome.failed[label] = str(error)
            return None

    for number in range(warmup):
        for variant in dict.fromkeys(variant for variant, _ in order):
            run(variant, f"warm-up {number + 1}")
    for variant, number in order:
        reading = run(variant, f"trial {number + 1}")
        if reading is not None:
            now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            file.add(Trial(group.name, variant.name, number, *reading, now))


def _expect_same_result(reading: Reading, results: set[Any], label: str) -> None:
    """Raises BenchError if a program has another "checksum" than the programs of its group before it."""
    own = reading[1].get("checksum")
    others = results - {None}
    if own is not None and others and own not in others:
        raise BenchError(
            f"{label} has the checksum {own!r}, and the others of its group have {others.pop()!r}"
        )
    results.add(own)


def launch_program(group: Group, variant: Variant, *, programs: Programs) -> Reading:
    """Runs the program once. Raises BenchError if it fails, prints no time, or has found its result wrong."""
    label = label_of(group, variant)
    command = variant.command(group.pes, programs)
    output = capture(command, label, variant.environment, timeout_s=TIMEOUT_S)
    return read_time(output, label)


def read_time(output: str, label: str) -> Reading:
    """The last JSON object in `output` that has the metric time_s."""
    # Open MPI 4 writes colours into the lines of the programs.
    for line in reversed(re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines()):
        if not line.startswith("{"):
            continue
        try:
            found = json.loads(line)
        except json.JSONDecodeError:
            continue
        if not isinstance(found, dict) or found.get("metric") != METRIC:
            continue
        value = found.pop("value", None)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
            raise BenchError(f"{label} printed {value!r} as its time")
        if found.get("verified") is False:
            raise BenchError(f"{label} has found its result wrong; its last lines:\n{tail(output)}")
        return float(value), found
    raise BenchError(f"{label} printed no {METRIC}; its last lines:\n{tail(output)}")
