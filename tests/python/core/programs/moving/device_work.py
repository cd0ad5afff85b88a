"""Load balancing by device time. Prints "all checked".

    device_work.py balance|spans emulated|cuda
    device_work.py periodic|refused|default

With cuda the kernels are CuPy's. Exits with 77 where CuPy or a GPU for it is missing, and says why.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from typing import Any

import numpy as np

import weft

MODE = sys.argv[1]
KIND = sys.argv[2] if len(sys.argv) > 2 else "emulated"
MISSING = 77
LIGHT, HEAVY = 1, 10
# About 2 ms on a GPU, whose threads take some cycles for each step.
STEPS_PER_UNIT = 500_000
SPIN = """
extern "C" __global__ void spin(float* values, long long steps) {
  float value = values[threadIdx.x];
  for (long long i = 0; i < steps; ++i) value = value * 0.999999f + 0.5f;
  values[threadIdx.x] = value;
}
"""

loads_of_steps: list[list[float]] = []
# The step of the preparation must not find the placement that the measured step is to find.
keep_placement = False


@weft.load_balancing.strategy("seen")
def seen(snapshot: weft.load_balancing.Snapshot) -> list[int]:
    """The heaviest first, to the PE with the least load; remembers the loads."""
    loads_of_steps.append([item.load_s for item in snapshot.objects])
    pes = snapshot.pes()
    if keep_placement:
        return pes
    times = list(snapshot.background_load_s)
    for i in sorted(range(len(pes)), key=lambda i: snapshot.objects[i].load_s, reverse=True):
        pes[i] = min(range(snapshot.num_pes), key=times.__getitem__)
        times[pes[i]] += snapshot.objects[i].load_s
    return pes


class Emulated:
    """Kernels that take a millisecond of processor time for each unit."""

    def __init__(self) -> None:
        self.array = weft.DeviceArray(1, float, "emulated")

    def stream(self) -> Any:
        return weft.Stream("emulated")

    def launch(self, units: int, stream: Any = None) -> None:
        weft.emulated.launch(self.spin, self.array, units, stream=stream)

    @staticmethod
    def spin(array: np.ndarray[Any, Any], units: int) -> None:
        end = time.thread_time() + 0.001 * units
        while time.thread_time() < end:
            array[0] += 1

    def done(self, stream: Any = None) -> weft.Operation[None]:
        if stream is None:
            return weft.emulated.launch(lambda _: None, self.array)
        return weft.stream_done(stream)


class Cuda:
    def __init__(self) -> None:
        cupy = importlib.import_module("cupy")
        self.kernel = cupy.RawKernel(SPIN, "spin")
        self.values = cupy.zeros(32, dtype=np.float32)
        self.cupy = cupy

    def stream(self) -> Any:
        return self.cupy.cuda.Stream(non_blocking=True)

    def launch(self, units: int, stream: Any = None) -> None:
        with contextlib.nullcontext() if stream is None else stream:
            self.kernel((1,), (32,), (self.values, np.int64(units * STEPS_PER_UNIT)))

    def done(self, stream: Any = None) -> weft.Operation[None]:
        return weft.stream_done(1 if stream is None else stream, kind=None if stream is not None else "cuda")


library: Any = None


def device() -> Any:
    """The device of this PE, made at its first use."""
    global library
    if library is None:
        library = {"emulated": Emulated, "cuda": Cuda}[KIND]()
    return library


class Field(weft.Chare):
    """Most of its work is its device's."""

    def __init__(self) -> None:
        self.units = HEAVY if self.index < 2 else LIGHT
        self.moves = 0

    def migrated(self) -> None:
        self.moves += 1

    def resume_from_sync(self) -> None:
        self.contribute(1, weft.Reducer.sum, self.over)
        del self.over

    # Compiles and loads the kernel, which no span is to contain.
    async def prepare(self) -> None:
        device().launch(LIGHT)
        await device().done()

    def compute(self) -> None:
        # The device is busy, so it does not wait for the host between the begin of the span and its kernel.
        device().launch(LIGHT)
        with self.device_work(kind=KIND):
            device().launch(self.units)

    def compute_and_sync(self, over: weft.Future[int]) -> None:
        self.compute()
        self.sync(over)

    def sync(self, over: weft.Future[int]) -> None:
        self.over = over
        self.at_sync()

    async def measured(self) -> float:
        await device().done()
        return self.device_load_s

    async def overlapping(self) -> tuple[float, float]:
        """Two bodies on one stream count once, two streams each."""
        before = await self.measured()
        stream, other = device().stream(), device().stream()
        with self.device_work(stream, KIND):
            device().launch(HEAVY, stream)
            with self.device_work(stream, KIND):
                device().launch(HEAVY, stream)
        await device().done(stream)
        nested = self.device_load_s - before
        with self.device_work(stream, KIND), self.device_work(other, KIND):
            device().launch(HEAVY, stream)
            device().launch(HEAVY, other)
        await device().done(stream)
        await device().done(other)
        return nested, self.device_load_s - before - nested

    async def across_an_await(self) -> float:
        before = await self.measured()
        stream = device().stream()
        with self.device_work(stream, KIND):
            device().launch(HEAVY, stream)
            await device().done(stream)
            device().launch(HEAVY, stream)
        await device().done(stream)
        return self.device_load_s - before

    async def raising(self) -> float:
        before = await self.measured()
        try:
            with self.device_work(kind=KIND):
                device().launch(HEAVY)
                raise ValueError
        except ValueError:
            return await self.measured() - before

    async def single(self) -> float:
        before = await self.measured()
        with self.device_work(kind=KIND):
            device().launch(LIGHT)
        return await self.measured() - before

    def where(self) -> int:
        return weft.my_pe()

    def num_moves(self) -> int:
        return self.moves


async def balance() -> None:
    global keep_placement
    fields = weft.Array(Field, 4)
    for i in range(4):
        await fields[i].prepare.call()
    over: weft.Future[int] = weft.Future()
    keep_placement = True
    fields.sync(over)  # what the preparation has cost the host belongs to this step
    assert await over == 4
    keep_placement = False
    loads_of_steps.clear()
    for i in range(4):
        await fields[i].compute.call()
    measured = [await fields[i].measured.call() for i in range(4)]
    assert min(measured[:2]) > max(measured[2:]) > 0, measured
    over = weft.Future()
    fields.compute_and_sync(over)  # no method waits for these kernels: the step does
    assert await over == 4
    (loads,) = loads_of_steps
    assert min(loads[:2]) > max(loads[2:]), loads
    assert all(after > before for before, after in zip(measured, loads, strict=True)), (measured, loads)
    pes = await fields.where.call()
    if weft.num_pes() == 2:
        # The light ones may weigh less than the two heavy ones differ.
        assert pes[0] != pes[1], pes
        assert sum(await fields.num_moves.call()) > 0
    assert max(await fields.measured.call()) == 0, "a step counts anew"
    print(f"device loads {loads}")


async def spans() -> None:
    fields = weft.Array(Field, 1)
    await fields[0].prepare.call()
    single = await fields[0].single.call()
    nested, streams = await fields[0].overlapping.call()
    assert 0 < single < nested, (single, nested)
    assert await fields[0].across_an_await.call() > single
    assert streams > single, (single, streams)
    assert await fields[0].raising.call() > 0


class Periodic(weft.Chare):
    balance_periodically = True

    def compute(self) -> None:
        with self.device_work(kind=KIND):
            device().launch(HEAVY)


async def periodic() -> None:
    chares = weft.Array(Periodic, 4)
    # A kernel takes 10 ms, which no method does. The test's limit of time ends the loop otherwise.
    while not any(max(loads) > 0.005 for loads in loads_of_steps):
        await chares.compute.call()
        await weft.sleep(0)


class Plain(weft.Chare):
    """Takes no part in load balancing."""

    def compute(self) -> float:
        with self.device_work(kind=KIND):
            device().launch(LIGHT)
        return self.device_load_s

    def compute_on(self, stream: Any, kind: str | None) -> None:
        with self.device_work(stream, kind):
            pass


class Refused(Plain):
    def resume_from_sync(self) -> None:
        pass

    def enter_twice(self) -> None:
        work = self.device_work(kind=KIND)
        with work, work:
            pass

    def reuse(self) -> None:
        work = self.device_work(kind=KIND)
        for _ in range(2):
            with work:
                device().launch(LIGHT)

    def keep(self) -> None:
        """Is never left: the job ends first."""
        self.kept = self.device_work(kind=KIND).__enter__()
        left_over.append(self.kept)


left_over: list[Any] = []


async def refused() -> None:
    for chare in (weft.Array(Plain, 1)[0], weft.Array(Refused, 1)[0]):
        await expect_error(chare.compute_on.call("main", None), "Chare.device_work got a str for a stream")
        await expect_error(chare.compute_on.call(0, "cuda"), "it is a stream's handle")
        await expect_error(chare.compute_on.call(None, "host"), "Chare.device_work names host memory")
        await expect_error(chare.compute_on.call(None, "gpu"), "there is no memory kind gpu")
    assert await weft.Array(Plain, 1)[0].compute.call() == 0
    chares = weft.Array(Refused, 1)
    await expect_error(chares[0].enter_twice.call(), "is entered already")
    await chares[0].reuse.call()
    await chares[0].keep.call()


async def default() -> None:
    """Without a stream, on the device that programs use if they name none."""
    chares = weft.Array(Refused, weft.num_pes())
    await chares.compute_on.call(None, None)
    assert max(await chares.compute.call()) >= 0


async def expect_error(awaitable: weft.Future[Any], words: str) -> None:
    try:
        await awaitable
    except weft.RemoteError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"nothing was raised: {words}")


async def main() -> None:
    if KIND == "cuda":
        try:
            importlib.import_module("cupy").cuda.runtime.getDeviceCount()
        except Exception as error:  # CuPy has no common class of errors about a missing driver
            print(f"CuPy has no GPU: {error}", file=sys.stderr)
            weft.exit(MISSING)
            return
    modes = {f.__name__: f for f in (balance, spans, periodic, refused, default)}
    await modes[MODE]()
    print("all checked")


weft.run(main)
for work in left_over:
    work.__exit__(None, None, None)  # the job has ended: nothing happens
