"""weft.device(); checks itself. With the argument `cuda` there is a driver, the stand-in one."""

import sys

from refusing import refused

import weft

HAS_CUDA = "cuda" in sys.argv


async def main():
    emulated = weft.device("emulated")
    assert (emulated.kind, emulated.index, str(emulated)) == ("emulated", 0, "emulated:0")
    assert emulated == weft.Device("emulated", 0) == weft.device("emulated:0")
    assert weft.DeviceArray(3, float, str(emulated)).kind == "emulated:0"
    if HAS_CUDA:
        assert weft.device() == weft.Device("cuda", 0)
        assert weft.device("cuda:1").index == 1
        refused("there is no cuda:2: this process has 2", weft.device, "cuda:2")
    else:
        refused('weft.device("emulated")', weft.device)
        refused("no CUDA driver", weft.device)
    refused("belongs to no device", weft.device, "host")
    refused("memory kind", weft.device, "gpu")
    return "all checked"


refused("no job is running", weft.device)
result = weft.run(main)
if result is not None:
    print(result)
