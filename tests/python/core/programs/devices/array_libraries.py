"""Arrays of another library on a GPU, through channels and entry methods; checks itself.

    array_libraries.py cupy|torch|numba|jax|standin

`standin` needs no library, and no GPU where the CUDA driver is a stand-in. Exits with 77 where the library or
a GPU for it is missing, and says why.
"""

import importlib
import sys

import numpy as np

import weft

LIBRARY = sys.argv[1]
SIZES = (1, 1000, 300_000)
MISSING = 77


class Cupy:
    """What this program does with a library: arrays from NumPy and back, doubled on a stream of its own."""

    takes_received = True

    def __init__(self):
        self.module = importlib.import_module("cupy")
        self.stream = self.module.cuda.Stream(non_blocking=True)

    def make(self, data):
        return self.module.asarray(data)

    def doubled(self, array):
        """Queued on the library's stream; what CuPy exports names its current stream, which waits for it."""
        current = self.module.cuda.get_current_stream()
        self.stream.wait_event(current.record())
        with self.stream:
            array *= 2
        current.wait_event(self.stream.record())
        return array

    def wrap(self, array):
        return self.module.asarray(array)

    def to_numpy(self, array):
        return self.module.asnumpy(array)


class Torch:
    takes_received = True

    def __init__(self):
        self.module = importlib.import_module("torch")
        if not self.module.cuda.is_available():
            raise ImportError("torch has no GPU here")
        self.stream = self.module.cuda.Stream()

    def make(self, data):
        return self.module.from_numpy(data.copy()).cuda()

    def doubled(self, array):
        # DLPack makes the current stream's work visible, which is the default stream's again by then.
        self.stream.wait_stream(self.module.cuda.current_stream())
        with self.module.cuda.stream(self.stream):
            array *= 2
        self.module.cuda.current_stream().wait_stream(self.stream)
        return array

    def wrap(self, array):
        return self.module.from_dlpack(array)

    def to_numpy(self, array):
        return array.cpu().numpy()


class Numba:
    takes_received = True

    def __init__(self):
        self.module = importlib.import_module("numba.cuda")
        if not self.module.is_available():
            raise ImportError("numba has no GPU here")
        self.stream = self.module.stream()

        cuda = self.module

        @cuda.jit
        def double(array):
            i = cuda.grid(1)
            if i < array.size:
                array[i] *= 2

        self.double = double
        try:
            self.doubled(self.make(np.ones(1)))
        except AttributeError as error:  # numba-cuda 0.30 with NumPy 2.5, which has dropped np.row_stack
            raise ImportError(f"it cannot compile kernels beside NumPy {np.__version__}: {error}") from error

    def make(self, data):
        return self.module.to_device(data)

    def doubled(self, array):
        self.double[(array.size + 255) // 256, 256, self.stream](array)
        handle = self.stream.handle  # a number, or a ctypes.c_void_p, which int() reads as text
        return self.module.as_cuda_array(Named(array, int(getattr(handle, "value", handle))))

    def wrap(self, array):
        return self.module.as_cuda_array(array)

    def to_numpy(self, array):
        return array.copy_to_host()


class Named:
    """The same array with the stream that its elements come from."""

    def __init__(self, array, stream):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": stream, "version": 3}


class Jax:
    takes_received = False  # its arrays do not change

    def __init__(self):
        self.module = importlib.import_module("jax")
        if not any(device.platform == "gpu" for device in self.module.devices()):
            raise ImportError("jax has no GPU here")
        self.module.config.update("jax_enable_x64", True)
        self.stream = None

    def make(self, data):
        return self.module.device_put(data)

    def doubled(self, array):
        return array * 2

    def wrap(self, array):
        return self.module.numpy.from_dlpack(array)

    def to_numpy(self, array):
        return np.asarray(array)


class Standin:
    """Speaks the CUDA array interface over memory of Weft's, which it changes by way of the host."""

    takes_received = True

    class Array:
        def __init__(self, device_array):
            self.device_array = device_array
            self.__cuda_array_interface__ = device_array.__cuda_array_interface__

    def __init__(self):
        self.stream = weft.Stream("cuda")

    async def make(self, data):
        array = weft.DeviceArray(data.shape, data.dtype, "cuda")
        return self.Array(await array.copy_from(data))

    async def doubled(self, array):
        values = await array.device_array.to_host()
        await array.device_array.copy_from(values * 2, stream=self.stream)
        return self.Array(array.device_array.on(self.stream))

    def wrap(self, array):
        return self.Array(array)

    async def to_numpy(self, array):
        return await array.device_array.to_host()


LIBRARIES = {"cupy": Cupy, "torch": Torch, "numba": Numba, "jax": Jax, "standin": Standin}


async def given(value):
    return await value if hasattr(value, "__await__") else value


class User(weft.Chare):
    def __init__(self):
        self.library = LIBRARIES[LIBRARY]()

    async def data(self, size):
        """Ones doubled on the library's stream: twos, if the consumer waits for the stream."""
        return await given(self.library.doubled(await given(self.library.make(np.ones(size)))))

    async def channels(self):
        channel = weft.Channel(self, self.proxy[1 - self.index])
        for size in SIZES:
            mine = await self.data(size)
            sent = channel.send(mine)
            if self.library.takes_received:
                theirs = await given(self.library.make(np.zeros(size)))
                await channel.recv(into=theirs)
            else:
                into = weft.DeviceArray(size, float, "cuda")
                await channel.recv(into=into)
                theirs = self.library.wrap(into)
            assert (await given(self.library.to_numpy(theirs)) == 2).all(), size
            await sent

    async def calls(self):
        for size in SIZES:
            back = await self.proxy[1 - self.index].double_again.call(await self.data(size), size)
            assert type(back) is weft.DeviceArray and back.kind.startswith("cuda")
            values = await given(self.library.to_numpy(self.library.wrap(back)))
            assert values.shape == (size,) and (values == 4).all(), (
                size,
                np.unique(values, return_counts=True),
            )

    async def double_again(self, array, size):
        assert array.shape == (size,) and array.dtype == np.float64
        doubled = await given(self.library.doubled(self.library.wrap(array)))
        if self.library.stream is not None:
            await weft.stream_done(self.library.stream)
        else:
            self.library.module.block_until_ready(doubled)
        return doubled

    @weft.post_entry("posted")
    def post_posted(self, array):
        if self.library.takes_received:
            array.into(self.place)

    async def prepare(self, size):
        self.place = await given(self.library.make(np.zeros(size)))

    async def posted(self, array):
        if self.library.takes_received:
            assert array is self.place
        else:
            array = self.library.wrap(array)
        return (await given(self.library.to_numpy(array))).tolist()

    async def posts(self):
        other = self.proxy[1 - self.index]
        await other.prepare.call(1000)
        assert await other.posted.call(await self.data(1000)) == [2.0] * 1000

    async def sum_doubled(self, array):
        doubled = await given(self.library.doubled(self.library.wrap(array)))
        return float((await given(self.library.to_numpy(doubled))).sum())

    async def broadcasts(self):
        """To both at once: each gets its own, which the other does not double."""
        await self.proxy.prepare.call(1000)
        assert await self.proxy.posted.call(await self.data(1000)) == [[2.0] * 1000] * 2
        for size in SIZES:
            assert await self.proxy.sum_doubled.call(await self.data(size)) == [4.0 * size] * 2, size


async def main():
    try:
        LIBRARIES[LIBRARY]()
    except ImportError as error:
        print(f"{LIBRARY} cannot be used here: {error}", file=sys.stderr)
        weft.exit(MISSING)
        return None
    users = weft.Array(User, 2)
    await users.channels.call()
    await users.calls.call()
    await users[0].posts.call()
    await users[1].posts.call()
    await users[0].broadcasts.call()
    await users[1].broadcasts.call()
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
