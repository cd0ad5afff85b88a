"""A job that uses no GPU has no context on one; checks itself."""

import ctypes

import weft


class Worker(weft.Chare):
    async def contexts(self):
        driver = ctypes.CDLL("libcuda.so.1")
        count = ctypes.c_int()
        assert driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
        active = []
        for device in range(count.value):
            flags, is_active = ctypes.c_uint(), ctypes.c_int()
            assert (
                driver.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(is_active)) == 0
            )
            active.append(is_active.value)
        return active

    async def talk(self):
        channel = weft.Channel(self, self.proxy[1 - self.index])
        sent = channel.send(b"x" * 100_000)
        await channel.recv(into=bytearray(100_000))
        await sent
        return await self.proxy[1 - self.index].contexts.call()


async def main():
    for active in await weft.Array(Worker, 2).talk.call():
        assert not any(active), active
    return "all checked"


result = weft.run(main)
if result is not None:
    print(result)
