"""The figures that Weft is held to between two GPUs, beside raw UCX in the same run."""

from __future__ import annotations

from weft.bench.figures import RAW_UCX, Goal
from weft.bench.gpus import PAIR
from weft.bench.programs import Programs
from weft.bench.question import Question
from weft.bench.system import System
from weft.bench.system_weft import weft_systems
from weft.bench.systems import reference_systems

GPU_LATENCY = Question("latency", (8,), "cuda", devices=PAIR)
GPU_BANDWIDTH = Question("bandwidth", (64 << 20,), "cuda", devices=PAIR)

_DIRECT = (f"direct, {GPU_LATENCY.placement}",)
_EITHER_WIRE_PATH = tuple(f"{path}, {GPU_LATENCY.placement}" for path in ("tagged", "active"))

#: Of the direct path over peer-mapped memory 0.8 is hoped for in the first.
GPU_GOALS: tuple[Goal, ...] = (
    Goal("C++ channel, 8 B one way", GPU_LATENCY, "channel", "cpp", 1.0, RAW_UCX, _DIRECT),
    Goal("C++ entry method, 8 B one way", GPU_LATENCY, "messaging", "cpp", 1.4, RAW_UCX, _EITHER_WIRE_PATH),
    Goal("Python channel, 8 B one way", GPU_LATENCY, "channel", "python", 1.15, RAW_UCX, _DIRECT),
    Goal("C++ channel, 64 MiB bandwidth", GPU_BANDWIDTH, "channel", "cpp", 0.97, RAW_UCX, _DIRECT),
    Goal("Python channel, 64 MiB bandwidth", GPU_BANDWIDTH, "channel", "python", 0.97, RAW_UCX, _DIRECT),
)


def gpu_questions(programs: Programs) -> list[tuple[Question, list[System]]]:
    """What has to be asked of whom to judge every goal of GPU_GOALS."""
    systems: list[System] = [*weft_systems(programs, "cuda"), *reference_systems("ucx", programs)]
    return [(GPU_LATENCY, systems), (GPU_BANDWIDTH, systems)]
