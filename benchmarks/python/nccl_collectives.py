"""NCCL's collectives from PyTorch, a GPU per rank, run by torchrun; by Weft: device_collectives.py."""

import os
import time

import torch
import torch.distributed
from measuring import argument_parser, pin, report

OPERATIONS_OF_GRAPH = 20
#: Operations that are queued before the CPU waits for the device, as in device_collectives.py.
MOST_LAUNCHES = 200


def operation_of(bench, size_bytes, device, ranks):
    whole = size_bytes // 4
    array = torch.ones(whole // ranks if bench == "all_gather" else whole, device=device)
    if bench == "all_gather":
        out = torch.empty(whole, device=device)
        return lambda: torch.distributed.all_gather_into_tensor(out, array)
    if bench == "reduce_scatter":
        out = torch.empty(whole // ranks, device=device)
        return lambda: torch.distributed.reduce_scatter_tensor(out, array)
    # In place: PyTorch has no other. Zeros stay numbers, however often they are summed.
    array.zero_()
    return lambda: torch.distributed.all_reduce(array)


def capture(operation):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(OPERATIONS_OF_GRAPH):
            operation()
    return graph.replay


def main():
    parser = argument_parser(__doc__, memories=("cuda",))
    parser.add_argument("--graph", action="store_true", help="launch what was captured")
    arguments = parser.parse_args()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl", device_id=device)
    torch.distributed.barrier()
    pin(rank)  # this thread alone: those of NCCL and PyTorch have begun

    def run(launch, operations, count):
        launches = -(-count // operations)
        for number in range(1, launches + 1):
            launch()
            if number % (MOST_LAUNCHES // operations) == 0:
                torch.cuda.synchronize()
        torch.cuda.synchronize()
        return launches * operations

    for step in arguments.steps:
        launch, operations = operation_of(arguments.bench, step.size_bytes, device, ranks), 1
        if arguments.graph:
            run(launch, operations, 3)
            launch, operations = capture(launch), OPERATIONS_OF_GRAPH
        run(launch, operations, step.warmup)
        torch.distributed.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        step.iterations = run(launch, operations, step.iterations)
        if rank == 0:
            report(arguments.bench, step, time.perf_counter() - start)
        del launch
    if arguments.graph:
        os._exit(0)  # with graphs that have used it, destroy_process_group() of PyTorch 2.11 does not return
    torch.distributed.destroy_process_group()


main()
