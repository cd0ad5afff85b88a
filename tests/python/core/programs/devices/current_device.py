"""The PE's own GPU is the current one for libraries that ask for it; checks itself, over the stand-in driver.

    current_device.py never|before|inside|thread|chosen|named|fails

when a library that allocates on the current device is imported: never; before the job; in an entry method; in
another thread. `chosen`: the program made another device current before. `named`: never, and the user has
named the devices with --gpus. `fails`: the context cannot be made.
"""

import ctypes
import sys
import threading
from pathlib import Path

import weft

sys.path.insert(0, str(Path(__file__).parents[1] / "support" / "stand_in_modules"))
WHEN = sys.argv[1]


def driver():
    return ctypes.CDLL("libcuda.so.1")


def make_current(device):
    context = ctypes.c_void_p()
    assert driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    assert driver().cuCtxSetCurrent(context) == 0


def current():
    """What the library's module says, without the import that would make a difference."""
    source = Path(__file__).parents[1] / "support" / "stand_in_modules" / "cupy.py"
    names = {"__name__": "not_cupy"}
    exec(compile(source.read_text(), source, "exec"), names)
    return names["current_device"]()


if WHEN in ("before", "chosen"):
    import cupy  # noqa: F401
if WHEN == "chosen":
    make_current(0)


class Worker(weft.Chare):
    async def look(self):
        mine = weft.device().index
        contexts = driver().fake_cuda_calls
        if WHEN == "never":
            assert current() is None and contexts(b"cuDevicePrimaryCtxRetain") == 0
        elif WHEN in ("before", "named"):
            assert current() == mine
        elif WHEN == "chosen":
            assert current() == 0
        elif WHEN == "inside":
            assert current() is None
            import cupy

            assert mine == cupy.DEVICE_AT_IMPORT and current() == mine
        elif WHEN == "thread":
            thread = threading.Thread(target=lambda: __import__("cupy"))
            thread.start()
            thread.join()
            await weft.sleep(0)
            while current() is None:
                await weft.yield_now()
            assert current() == mine
        elif WHEN == "fails":
            import cupy

            assert cupy.DEVICE_AT_IMPORT is None
        return mine


async def main():
    return await weft.Group(Worker).look.call()


result = weft.run(main)
watchers = [type(finder) for finder in sys.meta_path if type(finder).__module__.startswith("weft")]
assert watchers == [], watchers
if result is not None:
    print(result)
