"""Says what a program can still do after a signal has ended its job. argv[1] is what the PEs do meanwhile."""

import atexit
import sys
import time

import weft

MODE = sys.argv[1]


def say(what):
    print(f"PE {PE}: {what}", flush=True)


class Member(weft.Chare):
    async def run(self):
        global PE
        PE = weft.my_pe()
        try:
            say("runs")  # the signal may come at once
            if MODE == "busy":
                while True:
                    time.sleep(0.001)
            await weft.Future()
        finally:
            say("left its method")


PE = -1
atexit.register(lambda: say("exits"))


async def main():
    await weft.Group(Member).run.call()


try:
    weft.run(main)
except KeyboardInterrupt:
    say("was interrupted")
    raise
except SystemExit as end:
    say(f"was told to exit with {end.code}")
    raise
finally:
    say("cleans up")
