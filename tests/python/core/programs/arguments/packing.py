"""weft.pack, and arrays that it has packed on their way; checks itself."""

import sys
from pathlib import Path

import numpy as np
from refusing import refused

import weft

sys.path.insert(0, str(Path(__file__).parents[1] / "support" / "stand_in_modules"))


class Tensor:
    """Stands in for torch.Tensor: has contiguous(), on its current stream."""

    __module__ = "torch"

    def __init__(self, values):
        self.values = values

    def contiguous(self):
        return self if self.values.flags.c_contiguous else Tensor(self.values.copy(order="C"))


class Parameter(Tensor):
    __module__ = "my_model"


class Device:
    """Stands in for a device of CuPy, which copies to the device that is current."""

    current = 0

    def __init__(self, number):
        self.number = number

    def __enter__(self):
        self.before, Device.current = Device.current, self.number

    def __exit__(self, *_):
        Device.current = self.before


class CupyArray:
    __module__ = "cupy"

    def __init__(self, values, device):
        self.values, self.flags, self.device = values, values.flags, Device(device)

    def copy(self, order):
        return CupyArray(self.values.copy(order=order), Device.current)


class NumbaArray:
    __module__ = "numba.cuda.cudadrv.devicearray"

    def __init__(self, values):
        self.values = values

    def is_c_contiguous(self):
        return self.values.flags.c_contiguous


class JaxArray:
    __module__ = "jaxlib._jax"


class Subclass(np.ndarray):
    pass


GRID = np.arange(12.0).reshape(3, 4)
STRIDED = (GRID[:, 1], GRID[::2], GRID.T, GRID[:, ::-1], np.asfortranarray(GRID))


def check_numpy():
    for whole in (GRID, GRID[1], GRID[:0], np.float32(3) * np.ones(()), np.zeros((3, 1))[:, ::2]):
        assert weft.pack(whole) is whole
    for part in STRIDED:
        packed = weft.pack(part)
        assert packed.flags.c_contiguous and packed.shape == part.shape and (packed == part).all()
    assert type(weft.pack(GRID.view(Subclass).T)) is Subclass


def check_other_libraries():
    for make in (Tensor, Parameter):
        whole = make(GRID)
        assert weft.pack(whole) is whole
        assert weft.pack(make(GRID.T)).values.flags.c_contiguous
    whole = CupyArray(GRID, 1)
    assert weft.pack(whole) is whole
    packed = weft.pack(CupyArray(GRID.T, 1))
    assert packed.flags.c_contiguous and packed.device.number == 1 and Device.current == 0
    for whole in (NumbaArray(GRID), JaxArray(), weft.DeviceArray((3, 4), float, "emulated")):
        assert weft.pack(whole) is whole
    refused("cupy.ascontiguousarray", weft.pack, NumbaArray(GRID.T))
    refused("does not know", weft.pack, [1, 2])
    refused("does not know", weft.pack, weft.Stream("emulated"))


class Sums(weft.Chare):
    def sums(self, array):
        return array.tolist()

    async def exchange(self):
        channel = weft.Channel(self, self.proxy[1 - self.index])
        for part in STRIDED:
            sent = channel.send(weft.pack(part + self.index if self.index else part))
            theirs = await channel.recv(into=np.zeros(part.shape))
            assert (theirs == part + (1 - self.index)).all()
            await sent
            on_device = weft.DeviceArray(part.shape, float, "emulated")
            await on_device.copy_from(weft.pack(part))
            assert (await on_device.to_host() == part).all()


async def main():
    check_numpy()
    check_other_libraries()
    sums = weft.Array(Sums, 2)
    for part in STRIDED:
        assert await sums[1].sums.call(weft.nocopy(weft.pack(part))) == part.tolist()
    await sums.exchange.call()
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
