"""Device memory by its address in channels, and the copies of charm.lib. Of kind cuda."""

import array

import numpy as np
from charm4py import Array, Channel, Chare, charm, coro

import weft

SIZE = 1000


class End(Chare):
    @coro
    def run(self, stream):
        device = weft.DeviceArray(SIZE, "uint8", "cuda")
        address = device.__cuda_array_interface__["data"][0]
        host = np.full(SIZE, 7 if self.thisIndex[0] == 0 else 0, np.uint8)
        host_address = host.__array_interface__["data"][0]
        charm.lib.CudaHtoD(address, host_address, SIZE, stream)
        charm.lib.CudaStreamSynchronize(stream)
        at, sizes = array.array("L", [address, address + 10]), array.array("L", [10, SIZE - 10])
        channel = Channel(self, self.thisProxy[1 - self.thisIndex[0]])
        if self.thisIndex[0] == 0:
            channel.send(src_ptrs=at, src_sizes=sizes)
            channel.send(gpu_src_ptrs=at[:1], gpu_src_sizes=sizes[:1])
            return True
        channel.recv(post_addresses=at, post_sizes=sizes)
        channel.recv(post_buf_addresses=at[1:], post_buf_sizes=sizes[:1])
        host[:] = 0
        charm.lib.CudaDtoH(host_address, address, SIZE, stream)
        charm.lib.CudaStreamSynchronize(stream)
        return bool((host == 7).all())


def main(args):
    assert Array(End, 2).run(0, ret=True).get() == [True, True]
    print("addresses passed")
    exit()


charm.start(main)
