"""The GPUs of this machine, as far as `weft bench` needs to know them; without the compiled part of Weft."""

from __future__ import annotations

import ctypes
import functools

from weft_bench.errors import BenchError

#: Which device each of the two PEs takes.
PAIR = (0, 1)
SAME = (0, 0)
PLACEMENTS = {"pair": (PAIR,), "same": (SAME,), "both": (PAIR, SAME)}


@functools.cache
def gpu_names() -> tuple[str, ...]:
    """The names of the GPUs that the CUDA driver shows; empty without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ()
    count = ctypes.c_int()
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return ()
    names = []
    for ordinal in range(count.value):
        device, name = ctypes.c_int(), ctypes.create_string_buffer(100)
        if driver.cuDeviceGet(ctypes.byref(device), ordinal) == 0:
            driver.cuDeviceGetName(name, len(name), device)
        names.append(name.value.decode("utf-8", errors="replace"))
    return tuple(names)


def describe_gpus() -> str:
    """As "2 x NVIDIA H200", the different ones with plus signs between."""
    names = gpu_names()
    return " + ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))


def expect_memory(memory: str) -> None:
    """Raises BenchError, in a sentence, when this machine has no device for that kind of memory."""
    if memory == "cuda" and not gpu_names():
        raise BenchError(
            "--memory cuda: the CUDA driver (libcuda.so.1) shows no GPU on this machine; run on one that has "
            "a GPU, or take --memory emulated to try the programs out"
        )


def placements(memory: str, wanted: str | None) -> tuple[tuple[int, ...], ...]:
    """The devices of the PEs, for each placement to be measured: `wanted` is a key of PLACEMENTS.

    Nothing wanted is a pair where there are two GPUs. Memory that is not on GPUs has one placement, ().

    Raises:
        BenchError: a pair is wanted and there is one GPU, or a placement of other memory.
    """
    if memory != "cuda":
        if wanted is not None:
            raise BenchError(f"--placement says which GPUs are used, and {memory} memory is on none")
        return ((),)
    several = len(gpu_names()) > 1
    if wanted is None:
        return PLACEMENTS["pair" if several else "same"]
    if wanted != "same" and not several:
        raise BenchError(f"--placement {wanted} needs two GPUs, and there is one: take same")
    return PLACEMENTS[wanted]
