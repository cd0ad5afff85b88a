"""What moves bytes between GPUs without Weft: a plain peer copy, and NCCL as PyTorch offers it."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys

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
    """NCCL's send and receive through torch.distributed, started by torchrun."""

    programs: Programs

    @property
    def series(self) -> Series:
        return Series("nccl", "machine", "python")

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
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        command += [str(self.programs.need("nccl_pingpong.py")), question.bench]
        command += [*(step.argument() for step in steps), "--memory", question.memory]
        # torchrun would set it too, and say so at length.
        threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
        output = capture(command, self.series.label, threads, question.timeout_s)
        return read_measurements(output, question, steps, self.series.label)
