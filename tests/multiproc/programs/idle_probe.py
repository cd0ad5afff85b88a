"""A job that does nothing for a second; prints the processor time that all its PEs spent in it."""

import time

import weft

IDLE_S = 1.0


class Watch(weft.Chare):
    def start(self):
        self.spent_s = time.process_time()

    def stop(self):
        return time.process_time() - self.spent_s


async def main():
    watches = weft.Group(Watch)
    await watches.start.call()
    await weft.sleep(IDLE_S)
    print(sum(await watches.stop.call()) / IDLE_S)


weft.run(main)
