"""What moves bytes between GPUs without Weft: a plain peer copy, and NCCL as PyTorch offers it."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys
from collections.abc import Sequence

from weft_bench.process import capture, read_measurements
from weft_bench.programs import Programs
from weft_bench.question import Question, device_rate
from weft_bench.system import Reading, Series

_ONLY_DEVICES = "copies between devices only: --memory cuda"


@dataclasses.dataclass(frozen=True)
class PeerCopy:
    """cuMemcpyPeerAsync by one process that sees both GPUs, each copy waited for by polling an event."""

    programs: Programs

    @property
    def series(self) -> Series:
        return Series("peer-copy", "machine", "cpp")

    def absent(self, question: Question) -> str | None:
        if question.memory == "host":
            return _ONLY_DEVICES
        if self.programs.find("peer_copy") is None:
            return self.programs.advice("peer_copy")
        return None

    def run(self, question: Question) -> list[Reading]:
        steps = question.steps(8.0, device_rate(question.memory))
        command = [str(self.programs.need("peer_copy")), question.bench]
        command += [*(step.argument() for step in steps), "--memory", question.memory]
        command += ["--devices", ",".join(map(str, question.devices or (0, 1)))]
        output = capture(command, self.series.label, timeout_s=question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)


@dataclasses.dataclass(frozen=True)
class Nccl:
    """NCCL through torch.distributed, started by torchrun; `program` is its measuring program."""

    programs: Programs
    program: str = "nccl_pingpong.py"
    path: str = ""
    options: tuple[str, ...] = ()  # of the program

    @property
    def series(self) -> Series:
        return Series("nccl", "machine", "python", self.path)

    def absent(self, question: Question) -> str | None:
        if question.memory != "cuda":
            return _ONLY_DEVICES
        if question.placement == "same GPU":
            return "refuses two ranks on one GPU"
        if importlib.util.find_spec("torch") is None:
            return "pip install torch"
        return None

    def run(self, question: Question) -> list[Reading]:
        steps = question.steps(50.0, device_rate(question.memory))
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node", str(question.pes), str(self.programs.need(self.program))]
        command += [question.bench, *(step.argument() for step in steps), "--memory", question.memory]
        command += self.options
        # torchrun would set it too, and say so at length.
        threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
        output = capture(command, self.series.label, threads, question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)


_KERNELS_HERE = "kernels that write into the memory of a peer: --memory cuda, on two GPUs, with CuPy"


@dataclasses.dataclass(frozen=True)
class PeerKernels:
    """A kernel on each GPU, and one process that sees both: what the card can do."""

    programs: Programs
    path: str
    options: tuple[str, ...]  # of the program

    @property
    def series(self) -> Series:
        return Series("peer-copy", "machine", "python", self.path)

    def absent(self, question: Question) -> str | None:
        return why_no_kernels(question, self.options)

    def run(self, question: Question) -> list[Reading]:
        steps = question.steps(_KERNEL_US, device_rate(question.memory))
        command = [sys.executable, str(self.programs.need(KERNEL_PROGRAM)), question.bench]
        command += [
            *(step.argument() for step in steps),
            "--memory",
            question.memory,
            "--alone",
            *self.options,
        ]
        output = capture(command, self.series.label, timeout_s=question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)


KERNEL_PROGRAM = "kernel_pingpong.py"
_KERNEL_US = 2.0
MOST_PACKETS_BYTES = 64 << 10
#: How data and flags travel: the path of a record, and the options of the program.
KERNEL_WAYS = {
    "from kernels": ("--way", "signals"),
    "packets from kernels": ("--way", "packets"),
    "flags of kernels": ("--way", "flags"),
}


def why_no_kernels(question: Question, options: Sequence[str]) -> str | None:
    """Why KERNEL_PROGRAM does not answer the question; None if it does."""
    if question.memory != "cuda" or question.placement == "same GPU" or question.bench != "latency":
        return f"{_KERNELS_HERE}; latency"
    if "packets" in options and max(question.sizes) > MOST_PACKETS_BYTES:
        return "packets are for small data: --sizes"
    return None if importlib.util.find_spec("cupy") is not None else "pip install cupy-cuda13x"
