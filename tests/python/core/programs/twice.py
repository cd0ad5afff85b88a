"""Two runs after each other in one process, and a plain main; checks itself."""

import weft


class Worker(weft.Chare):
    def work(self, x):
        if x == 0:
            weft.exit()
        else:
            self.proxy[0].work(x - 1)


async def first():
    return weft.num_pes()


def second():
    weft.Array(Worker, 2)[1].work(3)


assert weft.run(first) == 1
assert weft.run(second) is None
try:
    weft.run(lambda: 1 / 0)
except SystemExit as exit:
    assert exit.code == 1
print("all checked")
