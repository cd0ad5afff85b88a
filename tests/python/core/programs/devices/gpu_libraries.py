"""Other libraries on the PE's own GPU, their element types, gradients and layouts; checks itself.

    gpu_libraries.py cupy|torch|numba|jax

Exits with 77 where the library or a GPU for it is missing, and says why. The library is imported inside the
job, unless there is a second argument.
"""

import importlib
import sys

import numpy as np
from refusing import refused

import weft

LIBRARY = sys.argv[1]
MISSING = 77
SIZE = 1000
if len(sys.argv) > 2:
    importlib.import_module("numba.cuda" if LIBRARY == "numba" else LIBRARY)


class Cupy:
    def __init__(self):
        self.module = importlib.import_module("cupy")
        self.module.cuda.runtime.getDeviceCount()

    def ones(self):
        return self.module.ones(SIZE)

    def device_of(self, array):
        return array.device.id

    def typed(self):
        """By the type's name, arrays of it whose bytes count up."""
        ml_dtypes = importlib.import_module("ml_dtypes")
        counts = np.arange(SIZE, dtype=np.uint8)
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
            try:
                array = self.module.asarray(counts.view(getattr(ml_dtypes, name)))
            except (KeyError, NotImplementedError, TypeError, ValueError):
                # CuPy has bfloat16 from version 14 on, and not the others.
                continue
            yield name, array, lambda array: self.module.asnumpy(array).view(np.uint8)

    def strided(self):
        grid = self.module.arange(12.0).reshape(3, 4)
        for part in (grid[:, 1], grid[::2], grid.T, self.module.asfortranarray(grid)):
            yield part, self.module.asnumpy(part)


class Torch:
    def __init__(self):
        self.module = importlib.import_module("torch")
        if not self.module.cuda.is_available():
            raise ImportError("torch has no GPU here")

    def ones(self):
        return self.module.ones(SIZE, device="cuda", dtype=self.module.float64)

    def device_of(self, array):
        return array.device.index

    def typed(self):
        torch = self.module
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "complex32"):
            counts = torch.arange(SIZE, device="cuda").to(torch.uint8)
            yield (
                name,
                counts.view(getattr(torch, name)),
                lambda array: array.view(torch.uint8).cpu().numpy(),
            )

    def strided(self):
        grid = self.module.arange(12.0, device="cuda").reshape(3, 4)
        for part in (grid[:, 1], grid[::2], grid.T):
            yield part, part.cpu().numpy()


class Numba:
    def __init__(self):
        self.module = importlib.import_module("numba.cuda")
        if not self.module.is_available():
            raise ImportError("numba has no GPU here")

    def ones(self):
        self.module.select_device(weft.device().index)
        return self.module.to_device(np.ones(SIZE))

    def device_of(self, array):
        return self.module.current_context().device.id

    def typed(self):
        return iter(())

    def strided(self):
        grid = self.module.to_device(np.arange(12.0).reshape(3, 4))
        refused("cupy.ascontiguousarray", weft.pack, grid[:, 1])
        yield grid, grid.copy_to_host()


class Jax:
    def __init__(self):
        self.module = importlib.import_module("jax")
        if not any(device.platform == "gpu" for device in self.module.devices()):
            raise ImportError("jax has no GPU here")
        self.module.config.update("jax_enable_x64", True)
        own = self.module.devices("gpu")[weft.device().index]
        self.module.config.update("jax_default_device", own)

    def ones(self):
        return self.module.numpy.ones(SIZE)

    def device_of(self, array):
        return array.device.id

    def typed(self):
        ml_dtypes = importlib.import_module("ml_dtypes")
        counts = np.arange(SIZE, dtype=np.uint8)
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
            values = counts.view(getattr(ml_dtypes, name))
            yield name, self.module.device_put(values), lambda array: np.asarray(array).view(np.uint8)

    def strided(self):
        grid = self.module.numpy.arange(12.0).reshape(3, 4)
        for part in (grid[:, 1], grid.T):
            yield part, np.asarray(part)


LIBRARIES = {"cupy": Cupy, "torch": Torch, "numba": Numba, "jax": Jax}


class User(weft.Chare):
    def usable(self):
        """Why this library cannot be used here; None if it can."""
        try:
            self.library = LIBRARIES[LIBRARY]()
        except ImportError as error:
            return str(error)
        return None

    def own_device(self):
        array = self.library.ones()
        assert self.library.device_of(array) == weft.device().index
        return weft.device().index

    async def raw(self, array):
        """What came: the name of its type, and its bytes."""
        host = await array.to_host()
        return str(array.dtype), np.ascontiguousarray(host).view(np.uint8)

    @weft.post_entry("land")
    def post_land(self, name, array):
        refused("reinterpreted", array.into, weft.DeviceArray(array.nbytes, np.int16, "cuda"))
        self.room = weft.DeviceArray(array.shape, name, "cuda")
        array.into(self.room)

    async def land(self, name, array):
        assert array is self.room
        return await self.raw(array)

    async def types(self):
        other = self.proxy[1 - self.index]
        for name, array, bytes_of in self.library.typed():
            expected = bytes_of(array).reshape(-1)
            came_type, came = await other.raw.call(array)
            assert name in came_type and np.array_equal(came, expected), (name, came_type)
            came_type, came = await other.land.call(name, array)
            assert name in came_type and np.array_equal(came, expected), (name, came_type)
            room = weft.DeviceArray(array.shape, name, "cuda")
            channel = weft.Channel(self, other, id=1)
            sent = channel.send(array)
            await channel.recv(into=room)
            assert np.array_equal((await self.raw(room))[1], expected), name
            await sent

    async def layouts(self):
        other = self.proxy[1 - self.index]
        for part, expected in self.library.strided():
            channel = weft.Channel(self, other, id=2)
            sent = channel.send(weft.pack(part))
            room = weft.DeviceArray(expected.shape, expected.dtype, "cuda")
            await channel.recv(into=room)
            assert np.array_equal(await room.to_host(), expected)
            await sent

    async def gradients(self):
        """Sent, and received into, as if detached."""
        torch = self.library.module
        other = self.proxy[1 - self.index]
        weights = torch.full((SIZE,), 1.0 + self.index, device="cuda", requires_grad=True)
        parameter = torch.nn.Parameter(torch.zeros(SIZE, device="cuda"))
        for source in (weights, weights * 1):
            _, came = await other.raw.call(source)
            assert (came.view(np.float32) == 1 + self.index).all()
            channel = weft.Channel(self, other, id=3)
            sent = channel.send(source)
            assert await channel.recv(into=parameter) is parameter
            assert bool((parameter == 2 - self.index).all()) and parameter.requires_grad
            await sent


async def main():
    users = weft.Array(User, 2)
    why = [reason for reason in await users.usable.call() if reason is not None]
    if why:
        print(f"{LIBRARY} cannot be used here: {why[0]}", file=sys.stderr)
        weft.exit(MISSING)
        return None
    print(await users.own_device.call(), file=sys.stderr)
    await users.types.call()
    await users.layouts.call()
    if LIBRARY == "torch":
        await users.gradients.call()
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
