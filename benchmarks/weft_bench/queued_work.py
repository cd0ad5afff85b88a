"""What mini-apps share whose streams order the exchange of halos: models "queued" and "graph".

docs/streams.md says what such programs must see to. Here are the number of hardware queues, the bound of
what is queued, and graphs of CuPy and of emulated devices.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import weft

QUEUED_MODELS = ("queued", "graph")

#: CUDA's setting of how many hardware queues the streams of a process have, read when the driver starts: 8 by
#: default, 32 at most. If two streams share a queue, one's wait for a halo holds back the other's send, for
#: which it may wait.
DEVICE_QUEUES_SETTING = "CUDA_DEVICE_MAX_CONNECTIONS"
MOST_DEVICE_QUEUES = "32"
#: Streams of Weft's own, of CuPy's and of CUDA's are six today, and some room.
OTHER_STREAMS = 8
#: A stream of CUDA has room for about 1000 pieces of work. Behind that the CPU would wait for the device in a
#: launch, and the other blocks of its PE could not queue the sends for which the device waits.
MOST_PIECES = 920
#: Landings of a message, and buffers of a halo, which iterations use in turn. A graph has as many iterations.
NUM_SLOTS = 2


def ask_for_device_queues(arguments: Iterable[str]) -> None:
    """For command lines with such a model, before the driver starts. Other models keep CUDA's default."""
    if any(word.endswith(QUEUED_MODELS) for word in arguments):
        os.environ.setdefault(DEVICE_QUEUES_SETTING, MOST_DEVICE_QUEUES)


def why_not_queued(model: str, memory: str, odf: int) -> str:
    """Why streams cannot order the exchange of halos, in a sentence for the user. Empty if they can."""
    if memory == "host":
        return f"--model {model} needs streams of a device: give --memory emulated or cuda with it"
    setting = os.environ.get(DEVICE_QUEUES_SETTING, "8")
    most = max(0, (int(setting) if setting.isdecimal() else 0) - OTHER_STREAMS)
    if memory == "cuda" and odf > most:
        return (
            f"--model {model} with --odf {odf}: with {DEVICE_QUEUES_SETTING}={setting} the streams of at "
            f"most {most} blocks of a PE have hardware queues of their own; give a smaller --odf, "
            f"{DEVICE_QUEUES_SETTING}={MOST_DEVICE_QUEUES}, or --model channel"
        )
    return ""


def capture_emulated(stream: weft.Stream, queue: Callable[[], None]) -> Callable[[], Any]:
    """What launches a graph of what `queue` queues on an emulated stream."""
    with weft.emulated.capture(stream) as graph:
        queue()
    return lambda: graph.launch(stream)


def capture_cuda(stream: Any, queue: Callable[[], None]) -> Callable[[], Any]:
    """The same on a stream of CuPy. The kernels have run before, because a capture cannot compile them."""
    import cupy

    # Relaxed: calls of Weft's for other streams stay legal.
    stream.begin_capture(cupy.cuda.runtime.streamCaptureModeRelaxed)
    try:
        queue()
    finally:
        graph = stream.end_capture()
    graph.upload(stream)
    return lambda: graph.launch(stream)


class QueuedIterations:
    """Iterations of a block that are queued on its stream, and done by it.

    Args:
        stream: the block's own.
        queue: queues one iteration with the buffers of a slot, 0 or 1.
        most_pieces: how many pieces of work an iteration is, at most.
        count: is called with the number of iterations that have been queued.
    """

    def __init__(
        self,
        stream: weft.Stream,
        queue: Callable[[int], None],
        most_pieces: int,
        count: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._stream = stream
        self._queue = queue
        self._count = count
        # Two batches are in flight, because the device must not run dry while the CPU queues one.
        self._batch = MOST_PIECES // 2 // most_pieces
        self._launch_graph: Callable[[], Any] | None = None
        #: Of the next iteration.
        self.slot = 0

    def capture(self, capture: Callable[[Callable[[], None]], Callable[[], Any]]) -> None:
        """From now on pairs of iterations are launches of a graph.

        `capture` makes what launches a graph of what its argument queues. REQUIRES: slot 0 is next.
        """

        def queue_slots() -> None:
            for slot in range(NUM_SLOTS):
                self._queue(slot)

        self._launch_graph = capture(queue_slots)

    async def run(self, iterations: int) -> None:
        """Queues them. The last ones may still be under way then: await the stream."""
        queued, batch_before = 0, None
        while iterations > 0:
            number = self._queue_next(iterations)
            iterations -= number
            queued += number
            if queued >= self._batch:
                batch = weft.stream_done(self._stream)
                if batch_before is not None:
                    await batch_before
                queued, batch_before = 0, batch
        if batch_before is not None:
            await batch_before

    def _queue_next(self, most: int) -> int:
        """Queues the next iteration, or two of them if a graph can have them. Returns how many.

        A graph begins with slot 0: its messages have the landings that it names.
        """
        number = 1
        if self._launch_graph is not None and self.slot == 0 and most >= NUM_SLOTS:
            number = NUM_SLOTS
            self._launch_graph()
        else:
            self._queue(self.slot)
        self.slot = (self.slot + number) % NUM_SLOTS
        self._count(number)
        return number
