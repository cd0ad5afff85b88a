"""my_pe() and num_pes() before, during and after a job; argv[1]: the number of PEs."""

import os
import sys

import weft

places = [(weft.my_pe(), weft.num_pes())]


class Asked(weft.Chare):
    def ask(self):
        places.append((weft.my_pe(), weft.num_pes()))


async def main():
    await weft.Group(Asked).ask.call()


weft.run(main)
places.append((weft.my_pe(), weft.num_pes()))
assert places == [(int(os.environ.get("WEFT_PE", 0)), int(sys.argv[1]))] * 3, places
