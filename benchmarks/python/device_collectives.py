"""Collectives of device arrays of all PEs, queued on a stream of each: float32, from one array into another.

The clock includes the queueing. With --graph some operations are captured in a graph once, untimed, and the
timed part launches it again and again. The same by NCCL: nccl_collectives.py.
"""

import time

import numpy as np
from device_streams import MOST_LAUNCHES, Stream
from measuring import argument_parser, pin, report

import weft
import weft.pgas

OPERATIONS_OF_GRAPH = 20

parser = argument_parser(__doc__, memories=("emulated", "cuda"))
parser.add_argument("--graph", action="store_true", help="launch what was captured")
parser.add_argument("--place-bytes", type=int, help="of the group; its default if absent")
arguments = parser.parse_args()


async def ones(count):
    array = weft.DeviceArray(count, np.float32, arguments.memory)
    return await array.copy_from(np.ones(count, np.float32))


async def measure(world, group, stream, step):
    whole, part = step.size_bytes // 4, step.size_bytes // 4 // world.size
    is_gather, is_reduction = arguments.bench == "all_gather", arguments.bench == "all_reduce"
    array = await ones(part if is_gather else whole)
    out = weft.DeviceArray(whole if is_gather or is_reduction else part, np.float32, arguments.memory)
    await out.copy_from(np.zeros(out.shape, np.float32))
    operation = getattr(group, arguments.bench)

    def queue(count=1):
        for _ in range(count):
            operation(array, out, stream=stream.own)

    launch, operations = queue, 1
    if arguments.graph:
        operations = OPERATIONS_OF_GRAPH
        queue()  # once without a capture
        await group.over()
        launch = stream.capture(lambda: queue(operations))

    async def run(count):
        launches = left = -(-count // operations)
        while left > 0:
            for _ in range(min(left, MOST_LAUNCHES // operations)):
                launch()
            left -= MOST_LAUNCHES // operations
            await (weft.stream_done(stream.own) if arguments.graph else group.over())
        return launches * operations

    await run(step.warmup)
    await world.barrier()
    start = time.perf_counter()
    step.iterations = await run(step.iterations)
    if world.rank == 0:
        report(arguments.bench, step, time.perf_counter() - start)
    assert (await out.to_host() == (1 if is_gather else world.size)).all()
    await world.barrier()


async def main(world):
    pin(world.rank)
    stream = Stream(arguments.memory)
    options = {} if arguments.place_bytes is None else {"place_bytes": arguments.place_bytes}
    group = await world.device_group(arguments.memory, **options)
    for step in arguments.steps:
        await measure(world, group, stream, step)
    await group.close()


weft.pgas.run(main)
