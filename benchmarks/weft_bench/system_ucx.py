"""Raw UCX: `ucx_perftest` of the libucx package, two processes on this host.

They find each other over TCP on the loopback interface; that connection carries no measured message.
Latency is tag_lat (or ucp_am_lat), the average over a run; bandwidth and rate are tag_bw (ucp_am_bw), which
keeps up to WINDOW sends in flight without the acknowledgement between windows that the other systems pay
for. `ucx_perftest` has one buffer for all messages: distinct buffers are measured by `raw_ucx.cpp`, in
windows as in the programs of Weft.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from weft_bench.errors import BenchError
from weft_bench.process import capture, finish, free_port, launched, read_measurements, tail, wait_listening
from weft_bench.programs import Programs
from weft_bench.question import GPU_RATE, WINDOW, Question, Step
from weft_bench.system import Reading, Series

INSTALL = "pip install libucx-cu13, or put a ucx_perftest of UCX >= 1.16 on PATH"
_PROGRAM = "raw_ucx"


@dataclasses.dataclass(frozen=True)
class UcxSettings:
    """A way to configure UCX: environment variables, and whether endpoints ask for error handling."""

    name: str
    environment: tuple[tuple[str, str], ...] = ()
    error_handling: bool = False


#: UCX without any settings.
DEFAULT_SETTINGS = UcxSettings("default settings")
#: What Weft's machine asks for (src/machine/ucx/handles/context.cpp): a failing peer is reported, over shared
#: memory as well, and no TCP on one host.
WEFT_SETTINGS = UcxSettings(
    "Weft's settings", (("UCX_MM_ERROR_HANDLING", "y"), ("UCX_TLS", "^tcp")), error_handling=True
)

#: Between processes of a host: copies through shared memory alone, or one copy by either process.
SHARED_MEMORY = UcxSettings("shared memory", (("UCX_TLS", "self,posix"),))
_CMA = (("UCX_TLS", "self,posix,cma"), ("UCX_RNDV_THRESH", "8K"))
CMA_READ = UcxSettings("cma read", (*_CMA, ("UCX_RNDV_SCHEME", "get_zcopy")))
CMA_WRITE = UcxSettings("cma write", (*_CMA, ("UCX_RNDV_SCHEME", "put_zcopy")))
#: All that are tried for host memory. Which is best depends on the machine, the day and the size.
HOST_SETTINGS = (DEFAULT_SETTINGS, WEFT_SETTINGS, SHARED_MEMORY, CMA_READ, CMA_WRITE)

_TESTS = {
    ("tag", "latency"): "tag_lat",
    ("tag", "bandwidth"): "tag_bw",
    ("tag", "rate"): "tag_bw",
    ("am", "latency"): "ucp_am_lat",
    ("am", "bandwidth"): "ucp_am_bw",
    ("am", "rate"): "ucp_am_bw",
}


@dataclasses.dataclass(frozen=True)
class UcxPerftest:
    """One way of sending ("tag" or "am") under one configuration."""

    way: str
    settings: UcxSettings
    programs: Programs = dataclasses.field(default_factory=Programs)

    @property
    def series(self) -> Series:
        return Series("ucx", "machine", "cpp", f"{self.way}, {self.settings.name}")

    def absent(self, question: Question) -> str | None:
        if perftest() is None:
            return INSTALL
        if question.memory == "emulated":
            return "UCX knows nothing of emulated memory: compare --memory host or cuda"
        if question.distinct and self.way != "tag":
            return "distinct buffers are measured with tagged messages only"
        if question.distinct and self.programs.find(_PROGRAM) is None:
            return self.programs.advice(_PROGRAM)
        return None

    def run(self, question: Question) -> list[Reading]:
        steps = question.steps(0.1) if question.memory == "host" else question.steps(10.0, GPU_RATE)
        if question.distinct:
            output = self._run_program(question, steps)
            return read_measurements(output, question, steps, self.series.label)
        with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
            batch = Path(folder) / "batch"
            batch.write_text(
                "".join(batch_line(self.way, question, step) for step in steps), encoding="utf-8"
            )
            output = self._run_pair(batch, question)
        return parse_output(output, question, steps)

    def _run_program(self, question: Question, steps: Sequence[Step]) -> str:
        tool = perftest()
        environment = {**(tool.environment if tool else {}), **dict(self.settings.environment)}
        command = [str(self.programs.need(_PROGRAM)), question.bench, *(step.argument() for step in steps)]
        command += ["--way", "tag-with-error-handling"] if self.settings.error_handling else []
        return capture(command, self.series.label, environment, question.timeout_s)

    def _run_pair(self, batch: Path, question: Question) -> str:
        """What the client of a server and client pair prints."""
        tool = perftest()
        if tool is None:
            raise BenchError(f"no ucx_perftest: {INSTALL}")
        port = free_port()
        environment = {**tool.environment, **dict(self.settings.environment)}
        if question.placement == "same GPU":  # by itself each side takes a GPU of its own
            environment["CUDA_VISIBLE_DEVICES"] = str(question.devices[0])
        command = [str(tool.path), "-p", str(port), "-f", "-v", "-b", str(batch)]
        command += ["-e"] if self.settings.error_handling else []
        cores = sorted(os.sched_getaffinity(0))
        what = f"ucx_perftest ({self.series.label})"
        with launched([*command, "-c", str(cores[0])], environment) as server:
            wait_listening(server, port, what)
            with launched([*command, "-c", str(cores[1 % len(cores)]), "127.0.0.1"], environment) as client:
                return finish(client, what, question.timeout_s)


@dataclasses.dataclass(frozen=True)
class Tool:
    """An executable and what its environment must have."""

    path: Path
    environment: dict[str, str]


def perftest() -> Tool | None:
    """ucx_perftest of the libucx package of this Python, else the one on PATH, else None."""
    spec = importlib.util.find_spec("libucx")
    if spec is not None and spec.submodule_search_locations:
        folder = Path(spec.submodule_search_locations[0])
        if (folder / "bin" / "ucx_perftest").is_file():
            return Tool(folder / "bin" / "ucx_perftest", {"LD_LIBRARY_PATH": str(folder / "lib")})
    found = shutil.which("ucx_perftest")
    return Tool(Path(found), {}) if found else None


def batch_line(way: str, question: Question, step: Step) -> str:
    """The line of a batch file that makes ucx_perftest take `step`; its name is the size."""
    messages = 1 if question.bench == "latency" else WINDOW
    options = [f"-t {_TESTS[way, question.bench]}", f"-s {step.size_bytes}"]
    options += [f"-n {step.iterations * messages}", f"-w {step.warmup * messages}"]
    options += [f"-O {WINDOW}"] if question.bench != "latency" else []
    options += ["-m cuda"] if question.memory == "cuda" else []
    return f"{step.size_bytes} {' '.join(options)}\n"


def parse_output(output: str, question: Question, steps: Sequence[Step]) -> list[Reading]:
    """The readings in what ucx_perftest -f -v prints: a line of column names, then a line of values per size.

    Of each pair of columns (avg_x, overall_x) the overall one is used. Bandwidths are in MiB/s, rates in
    messages/s.
    """
    column = {"latency": "overall_lat", "bandwidth": "overall_bw", "rate": "overall_mr"}[question.bench]
    scale = {"latency": 1.0, "bandwidth": 2**20 / 1e9, "rate": 1e-6}[question.bench]
    names: list[str] = []
    values: dict[int, float] = {}
    for line in output.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if column in fields:
            names = fields
        elif names and len(fields) == len(names) and fields[0].isdigit():
            values[int(fields[0])] = float(fields[names.index(column)]) * scale
    missing = [step.size_bytes for step in steps if step.size_bytes not in values]
    if missing:
        raise BenchError(f"ucx_perftest gave no figure for {missing} bytes; its last lines:\n{tail(output)}")
    return [Reading(step.size_bytes, values[step.size_bytes], step.warmup) for step in steps]
