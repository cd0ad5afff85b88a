"""Chares move at sync points. An exit code of its own."""

from charm4py import Array, Chare, Reducer, charm


class Worker(Chare):
    def __init__(self):
        self.pes = [charm.myPe()]
        if self.thisIndex == (0,):
            self.setMigratable(False)

    def step(self):
        self.AtSync()

    def migrated(self):
        self.pes.append(charm.myPe())

    def resumeFromSync(self):
        self.reduce(self.thisProxy[0].over, len(self.pes) - 1, Reducer.sum)

    def over(self, moves):
        assert self.pes == [charm.myPe()]
        print("moves:", moves)
        charm.exit(3)


def main(args):
    Array(Worker, 8, useAtSync=True).step()


charm.start(main)
