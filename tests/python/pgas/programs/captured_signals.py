"""What streams do with segments while a graph is captured. The stand-in driver refuses what that forbids."""

import ctypes
import sys

import weft
import weft.pgas as pgas

KIND = sys.argv[1]


async def main(world: pgas.Team) -> None:
    capture = ctypes.CDLL("libcuda.so.1").fake_cuda_capture
    capture.argtypes = (ctypes.c_void_p, ctypes.c_int)
    words = pgas.make_segment(2, "uint32", KIND)
    await pgas.put(0, words.pointer(1))
    stream = weft.Stream(KIND)
    capture(stream.handle, 1)
    queued = [
        pgas.signal_on_stream(words.pointer(0), 7, stream),
        pgas.wait_on_stream(words.pointer(0), 7, stream),
        pgas.copy_on_stream(words.pointer(0), words.pointer(1), 1, stream),
    ]
    assert all(operation.done() for operation in queued), "a graph has no end that could be waited for"
    capture(stream.handle, 0)
    await weft.stream_done(stream)  # the stand-in has queued it as any work
    assert await pgas.get(words.pointer(1)) == 7
    print("all checked")


weft.pgas.run(main)
