"""Chares move at sync points. A helper may call AtSync. An exit code of its own."""

from charm4py import Array, Chare, Reducer, charm


class Worker(Chare):
    def __init__(self):
        self.pes = [charm.myPe()]
        if self.thisIndex == (0,):
            self.setMigratable(False)

    def step(self):
        reach(self)

    def migrated(self):
        self.pes.append(charm.myPe())

    def resumeFromSync(self):
        self.reduce(self.thisProxy[0].over, len(self.pes) - 1, Reducer.sum)

    def over(self, moves):
        assert self.pes == [charm.myPe()]
        print("moves:", moves)
        charm.exit(3)


class Forgetful(Chare):
    def step(self):
        reach(self)


def reach(chare):
    chare.AtSync()


def main(args):
    try:
        Chare(Forgetful).step(ret=True).get()
    except Exception as error:
        assert "define resumeFromSync" in str(error), error
    else:
        raise AssertionError("no exception")
    Array(Worker, 8, useAtSync=True).step()


charm.start(main)
