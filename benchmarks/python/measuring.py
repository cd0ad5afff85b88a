"""Shared by the measuring programs in Python: the command line, the clock, the printed line.

    program.py BENCH SIZE:ITERATIONS:WARMUP[:BUFFERS]... [options of the program]

BENCH is latency, bandwidth or rate. Every program measures in the manner of the OSU benchmarks:

- latency: a ping-pong; one way is half of a round trip, averaged over ITERATIONS round trips.
- bandwidth, rate: ITERATIONS windows of WINDOW sends in flight together, the receives posted as one window,
  one acknowledgement without data per window.
- all_reduce, all_gather, reduce_scatter: the time of one collective operation; its size is that of the whole.
- pgas_latency, pgas_flood, pgas_flood_both, pgas_fetch_add, memspeed, of one-sided operations: the time of
  one that is over before the next; windows of FLOOD_WINDOW, by one or by both processes; bytes per second of
  large copies.

The messages of windows take BUFFERS buffers in turn at either end, by default one, as in osu_bw. WARMUP round
trips or windows come first, untimed. The clock of PE 0 runs from its first send after the
warm-up to the last reply. Each process stays on the core with its PE's number, modulo the cores that it may
use. Buffers are written before use: pages never written are all one page of zeros, which reads faster than
any message travels.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WINDOW = 64
FLOOD_WINDOW = 100
METRICS = {
    "latency": "latency_us",
    "bandwidth": "bandwidth_GBps",
    "rate": "rate_Mps",
    "pgas_latency": "latency_us",
    "pgas_flood": "bandwidth_GBps",
    "pgas_flood_both": "bandwidth_GBps",
    "pgas_fetch_add": "latency_us",
    "memspeed": "bandwidth_GBps",
    "all_reduce": "latency_us",
    "all_gather": "latency_us",
    "reduce_scatter": "latency_us",
}


@dataclass
class Step:
    """One message size, and how often."""

    size_bytes: int
    iterations: int
    warmup: int
    buffers: int = 1

    @classmethod
    def parse(cls, text: str) -> Step:
        return cls(*(int(part) for part in text.split(":")))


def argument_parser(description: str | None, memories: Sequence[str] = ("host",)) -> argparse.ArgumentParser:
    """With the arguments that all measuring programs take; `memories` are the kinds that this one knows."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("bench", choices=sorted(METRICS))
    parser.add_argument("steps", nargs="+", type=Step.parse, metavar="SIZE:ITERATIONS:WARMUP[:BUFFERS]")
    parser.add_argument("--memory", choices=memories, default=memories[0], help="kind of the buffers")
    return parser


def numbers_of_buffers(step: Step, sends: bool) -> tuple[int, int]:
    """Outgoing and incoming ones: windows go one way."""
    return (step.buffers, 1) if sends else (1, step.buffers)


def pin(pe: int) -> None:
    """Keep this process on one core, so that the scheduler's choices are not part of the figure."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[pe % len(cores)]})


#: Where GPU memory may come from: Weft (cudaMalloc), a stream-ordered pool (CuPy),
#: virtual-memory mappings (PyTorch with expandable segments), managed memory (CuPy), PyTorch (cudaMalloc).
ALLOCATORS = ("default", "async-pool", "vmm", "managed", "torch")


def make_library_array(size_bytes: int, value: int, allocator: str, device: int) -> Any:
    """Bytes of that value in memory of that allocator, on that GPU, when the GPU is done with them."""
    if allocator in ("vmm", "torch"):
        if allocator == "vmm":
            os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        import torch

        array = torch.full((size_bytes,), value, dtype=torch.uint8, device=f"cuda:{device}")
        torch.cuda.synchronize(device)
        return array
    import cupy

    with cupy.cuda.Device(device) as here:
        pool = cupy.cuda.MemoryAsyncPool() if allocator == "async-pool" else None
        make = cupy.cuda.malloc_managed if pool is None else pool.malloc
        with cupy.cuda.using_allocator(make):
            array = cupy.full(size_bytes, value, cupy.uint8)
        here.synchronize()
    return array


async def make_arrays(
    size_bytes: int, count: int, value: int, memory: str, allocator: str = "default"
) -> list[Any]:
    """Bytes of `value` in memory of that kind, on this PE's device; only for programs of Weft."""
    import numpy as np

    import weft

    if allocator != "default":
        device = weft.DeviceArray(1, np.uint8, memory).device
        return [make_library_array(size_bytes, value, allocator, device) for _ in range(count)]
    arrays = [np.full(size_bytes, value, np.uint8) for _ in range(count)]
    if memory == "host":
        return arrays
    return [await weft.DeviceArray(size_bytes, np.uint8, memory).copy_from(array) for array in arrays]


def report(bench: str, step: Step, elapsed_s: float) -> None:
    """Print the figure for `step`, whose timed part took `elapsed_s`."""
    each_s = elapsed_s / step.iterations
    size_gb = step.size_bytes / 1e9
    value = {
        "latency": each_s / 2 * 1e6,
        "bandwidth": WINDOW * size_gb / each_s,
        "rate": WINDOW / each_s / 1e6,
        "pgas_flood": FLOOD_WINDOW * size_gb / each_s,
        "pgas_flood_both": 2 * FLOOD_WINDOW * size_gb / each_s,
        "memspeed": size_gb / each_s,
    }.get(bench, each_s * 1e6)
    print(json.dumps({"size_bytes": step.size_bytes, "metric": METRICS[bench], "value": value}), flush=True)
