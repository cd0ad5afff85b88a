"""What is asked of a system: the bench, its message sizes, and how many iterations answer it."""

from __future__ import annotations

import dataclasses
import functools
import re
from pathlib import Path

from weft_bench.errors import BenchError

#: Sends that are in flight together in the bandwidth and rate benches, before one acknowledgement.
WINDOW = 64
#: One-sided operations that are in flight together in the benches pgas_flood and pgas_flood_both.
FLOOD_WINDOW = 100

#: Fewer runs give a median that one disturbed run can move.
MIN_RUNS = 5

#: The timed part of one size takes about this long in one run, however slow the system. On devices a launch
#: takes a second or two until the first message, and the time on a machine with GPUs is short.
_SIZE_BUDGET_US = {"host": 150_000.0, "emulated": 60_000.0, "cuda": 60_000.0}
#: Round trips or windows timed at least, and how many untimed ones come before them at least.
_LEAST = {"host": (5, 2), "emulated": (1, 1), "cuda": (1, 1)}
#: Windows of at least this size, in bytes, take seconds: one is enough.
_LARGE_WINDOW = 1 << 30
_LEAST_LARGE = (1, 1)
#: More PEs than cores take turns, so that the time of an allreduce grows faster than their number.
_LEAST_ALLREDUCES = 200
#: What is set up for a new buffer is over after so many.
_SETTLED = 4
_MAX_ROUND_TRIPS = 200_000
#: One-sided operations on mapped memory take nanoseconds.
_MAX_ONE_SIDED = 4_000_000
_MAX_WINDOWS = 20_000
#: What two processes pay for a message on a GPU that they share, which does the work of one at a time.
_SHARED_GPU_US = 150.0

#: Bytes per microsecond that large messages move at, about: copied by a processor, from GPU to GPU, and from
#: GPU over host memory to GPU.
COPY_RATE = 10_000.0
GPU_RATE = 350_000.0
STAGED_RATE = 5_000.0

#: Benches of device_collectives.
DEVICE_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")

DEFAULT_SIZES: dict[str, tuple[int, ...]] = {
    "latency": (1, 8, 64, 512, 1024, 4096, 16384, 65536, 262144, 1 << 20, 4 << 20),
    "bandwidth": (64, 1024, 4096, 16384, 65536, 262144, 1 << 20, 4 << 20, 64 << 20),
    "rate": (1, 8, 64, 512),
    "pgas_latency": (8, 64, 512, 4096, 32768, 256 << 10),
    "pgas_flood": (8, 64, 256, 1024, 4096, 16384, 65536, 256 << 10, 1 << 20),
    "pgas_flood_both": (8, 64, 256, 1024, 4096, 16384, 65536, 256 << 10, 1 << 20),
    "pgas_fetch_add": (8,),
    "memspeed": (1 << 20, 16 << 20, 64 << 20),
    **dict.fromkeys(DEVICE_COLLECTIVES, (8, 1024, 16384, 65536, 262144, 1 << 20, 64 << 20)),
}

_CUDA_SIZES = (1, 8, 64, 512, 4096, 16384, 65536, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20)

METRIC_OF_BENCH = {
    "latency": "latency_us",
    "bandwidth": "bandwidth_GBps",
    "rate": "rate_Mps",
    "startup": "time_s",
    "memory": "memory_bytes",
    "jacobi3d": "time_s",
    "allreduce": "latency_us",
    "busy": "latency_us",
    "reduction": "time_s",
    "pgas_latency": "latency_us",
    "pgas_flood": "bandwidth_GBps",
    "pgas_flood_both": "bandwidth_GBps",
    "pgas_fetch_add": "latency_us",
    "memspeed": "bandwidth_GBps",
    "pgas_flood_half_size": "half_size_bytes",
    "pgas_flood_peak": "bandwidth_GBps",
    **dict.fromkeys(DEVICE_COLLECTIVES, "latency_us"),
}
#: Those of one-sided operations; their default sizes are those of host memory in every memory.
ONE_SIDED_BENCHES = ("pgas_latency", "pgas_flood", "pgas_flood_both", "pgas_fetch_add", "memspeed")
_FLOODS = ("pgas_flood", "pgas_flood_both")

#: How records name the buffers that the messages of a window use.
ONE_BUFFER, DISTINCT_BUFFERS = "one buffer", "distinct buffers"
#: Distinct buffers are measured from this size on. All systems copy smaller messages through shared memory.
DISTINCT_LEAST_BYTES = 64 << 10
#: All distinct buffers of a process are at most this large, but at least twice the last-level cache.
_DISTINCT_MOST_BYTES = 512 << 20


@dataclasses.dataclass(frozen=True)
class Step:
    """One size of a question: `iterations` timed round trips or windows after `warmup` untimed ones.

    The messages use `buffers` buffers in turn, at either end.
    """

    size_bytes: int
    iterations: int
    warmup: int
    buffers: int = 1

    def argument(self) -> str:
        """As the measuring programs take it on their command line."""
        return ":".join(map(str, dataclasses.astuple(self)[: 3 if self.buffers == 1 else 4]))


@dataclasses.dataclass(frozen=True)
class Question:
    """A bench, a key of METRIC_OF_BENCH, over message `sizes` in bytes, with buffers in `memory`.

    `distinct`: the messages of a window use a buffer each, instead of one for all (bandwidth of host memory).
    """

    bench: str
    sizes: tuple[int, ...]
    memory: str = "host"
    pes: int = 2
    #: The GPU of each PE; empty where the memory is on none.
    devices: tuple[int, ...] = ()
    distinct: bool = False

    @property
    def buffers(self) -> str:
        """As records name them, at the end of their path."""
        if self.memory != "host" or self.bench not in ("bandwidth", "memspeed", *_FLOODS):
            return ""
        return DISTINCT_BUFFERS if self.distinct else ONE_BUFFER

    def path(self, way: str) -> str:
        """The path of a record: the `way` through the system, the placement, the buffers."""
        return ", ".join(part for part in (way, self.placement, self.buffers) if part)

    @property
    def placement(self) -> str:
        """As records name it, in their path."""
        if not self.devices:
            return ""
        return "same GPU" if len(set(self.devices)) == 1 else "GPU pair"

    @property
    def metric(self) -> str:
        return METRIC_OF_BENCH[self.bench]

    @property
    def timeout_s(self) -> float:
        """A launch that takes longer hangs. One on GPUs, where minutes are few, takes some 4 s."""
        return 60.0 if self.memory == "cuda" else 180.0

    def steps(self, message_us: float, bytes_per_us: float = COPY_RATE) -> list[Step]:
        """The steps for a system whose small messages cost about `message_us` each.

        The estimate only sizes the loops, so that a slow system does not hold up a run for minutes.
        """
        if self.placement == "same GPU":
            message_us = max(message_us, _SHARED_GPU_US)
        return [_step(self, size, message_us + size / bytes_per_us) for size in self.sizes]


def device_rate(memory: str) -> float:
    """The rate of large messages of device memory that are not staged, in bytes per microsecond."""
    return GPU_RATE if memory == "cuda" else COPY_RATE


def default_sizes(bench: str, memory: str) -> tuple[int, ...]:
    """The sizes that are measured by default."""
    is_cuda = memory == "cuda" and bench not in ("rate", *ONE_SIDED_BENCHES, *DEVICE_COLLECTIVES)
    return _CUDA_SIZES if is_cuda else DEFAULT_SIZES[bench]


def parse_sizes(text: str) -> tuple[int, ...]:
    """Message sizes from "8,1K,4M": whole numbers of bytes with an optional K, M or G (powers of 1024)."""
    return tuple(_parse_size(part.strip()) for part in text.split(","))


def _parse_size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)(i?B)?", text, flags=re.IGNORECASE)
    if match is None:
        raise BenchError(
            f"{text!r} is not a message size: write bytes as in 8, 64K or 4M, with commas between"
        )
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2].upper()]


def without_buffers(path: str) -> str:
    """A record's `path` without its last part, if that names the buffers."""
    way, _, last = path.rpartition(", ")
    return way if last in (ONE_BUFFER, DISTINCT_BUFFERS) else path


def distinct_sizes(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Those of `sizes` that are measured with distinct buffers too."""
    return tuple(size for size in sizes if size >= DISTINCT_LEAST_BYTES)


def distinct_buffers(size_bytes: int) -> int:
    """How many buffers keep messages of this size out of the cache.

    At least one for each message of a window. If a window is more than 512 MiB: 512 MiB of buffers.
    """
    window = min(WINDOW, max(1, _DISTINCT_MOST_BYTES // size_bytes))
    return max(window, buffers_beyond_cache(size_bytes))


def buffers_beyond_cache(size_bytes: int) -> int:
    """How many buffers of this size together have twice the last-level cache."""
    return -(-2 * _last_level_cache_bytes() // size_bytes)


@functools.cache
def _last_level_cache_bytes() -> int:
    """Of the first core; 64 MiB if the kernel does not tell."""
    found = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    try:
        return max(_parse_size(file.read_text(encoding="ascii").strip()) for file in found)
    except (OSError, ValueError, BenchError):
        return 64 << 20


def _step(question: Question, size_bytes: int, one_way_us: float) -> Step:
    if question.bench == "reduction":
        return Step(size_bytes, iterations=50, warmup=5)
    if question.bench == "busy":
        return Step(size_bytes, iterations=1, warmup=1)
    if question.bench in ("startup", "memory"):
        return Step(size_bytes, iterations=1, warmup=0)
    if question.bench == "allreduce":
        iterations = max(_LEAST_ALLREDUCES, int(_SIZE_BUDGET_US["host"] / (one_way_us * question.pes**2)))
        return Step(size_bytes, iterations, warmup=iterations // 10)
    if question.bench in ONE_SIDED_BENCHES:
        return _one_sided_step(question, size_bytes, one_way_us)
    in_windows = question.bench in ("bandwidth", "rate")
    messages, most = (WINDOW, _MAX_WINDOWS) if in_windows else (2, _MAX_ROUND_TRIPS)
    is_large = in_windows and messages * size_bytes >= _LARGE_WINDOW and question.memory == "host"
    least, least_warmup = _LEAST_LARGE if is_large else _LEAST[question.memory]
    iterations = int(_SIZE_BUDGET_US[question.memory] / (messages * one_way_us))
    iterations = max(least, min(most, iterations))
    # A new buffer is posted for its second window, too late for the sender, and mapped in its third.
    warmup = max(least_warmup, min(_SETTLED, iterations), iterations // 10)
    return Step(size_bytes, iterations, warmup, distinct_buffers(size_bytes) if question.distinct else 1)


def _one_sided_step(question: Question, size_bytes: int, operation_us: float) -> Step:
    operations = FLOOD_WINDOW if question.bench in _FLOODS else 1
    iterations = int(_SIZE_BUDGET_US[question.memory] / (operations * operation_us))
    iterations = max(_LEAST[question.memory][0], min(_MAX_ONE_SIDED // operations, iterations))
    if not question.distinct:
        return Step(size_bytes, iterations, max(1, iterations // 10))
    # Each buffer is used before and in the timed part.
    buffers = buffers_beyond_cache(size_bytes)
    rounds = -(-buffers // operations)
    return Step(size_bytes, max(iterations, rounds), max(rounds, iterations // 10), buffers)
