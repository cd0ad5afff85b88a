"""Flags that kernels raise: numbers go around a ring, written by kernels into the memory of the next PE.

weft run -n 2 examples/19_kernel_flags/kernel_flags.py

With a GPU for each PE and CuPy the kernels are CUDA C++, compiled when the program runs. Elsewhere they are
Python functions on emulated devices.
"""

import importlib.util
from typing import Any

import weft
import weft.emulated
import weft.pgas

ROUNDS = 5

SOURCE = r"""
#include "weft/device/kernels.cuh"
using namespace weft::device;

extern "C" __global__ void send(const unsigned long long* numbers, const unsigned long long* flags, int pe,
                                const long long* own, unsigned round) {
  long long* const theirs = peer<long long>(numbers, pe);
  put_signal(theirs + round, own + round - 1, sizeof *own, peer<Word>(flags, pe), round);
}
"""


def send(numbers: Any, flags: Any, pe: int, own: Any, round_number: int) -> None:
    """The same kernel on an emulated device."""
    theirs = weft.emulated.memory_at(int(numbers[pe]), ROUNDS + 1, "int64")
    theirs[round_number] = own[round_number - 1]
    weft.emulated.memory_at(int(flags[pe]), 1, "uint32")[0] = round_number


def find_kind() -> str:
    """GPUs if there are some, and CuPy."""
    if importlib.util.find_spec("cupy") is None:
        return "emulated"
    try:
        weft.device("cuda")
    except weft.Error:
        return "emulated"
    return "cuda"


def make_launcher(kind: str) -> Any:
    """A function that launches the kernel."""
    if kind == "emulated":
        return lambda *arguments: weft.emulated.launch(send, *arguments)
    import cupy
    import numpy as np

    module = cupy.RawModule(code=SOURCE, options=("-std=c++17", "-I" + weft.include_dir()))
    kernel = module.get_function("send")

    def launch(numbers: Any, flags: Any, pe: int, own: Any, round_number: int) -> None:
        on_gpu = [cupy.asarray(array) for array in (numbers, flags, own)]
        kernel((1,), (1,), (*on_gpu[:2], np.int32(pe), on_gpu[2], np.uint32(round_number)))

    return launch


async def main(world: weft.pgas.Team) -> None:
    kind = find_kind()
    launch = make_launcher(kind)
    to = (world.rank + 1) % world.size

    # The number of each round, and a flag, which lies with the PE that awaits it.
    own = weft.pgas.make_segment(ROUNDS + 1, "int64", kind)
    flag = weft.pgas.make_segment(1, "uint32", kind)
    await weft.pgas.put(world.rank, own.pointer(0))
    await weft.pgas.put(0, flag.pointer())

    # Arrays of addresses in device memory, which kernels take as plain arguments.
    numbers = await weft.pgas.peer_addresses(await world.allgather(own.pointer()), kind)
    flags = await weft.pgas.peer_addresses(await world.allgather(flag.pointer()), kind)
    await world.barrier()  # all flags are 0

    for i in range(1, ROUNDS + 1):
        launch(numbers.array, flags.array, to, own.local, i)
        await weft.pgas.wait_for(flag.pointer(), i)  # no message: the kernel of the previous rank sets it

    print(f"rank {world.rank} has the number of rank {await weft.pgas.get(own.pointer(ROUNDS))}")
    await world.barrier()  # the memory stays until all ranks are here


weft.pgas.run(main)
