"""NCCL's send and receive from PyTorch, a GPU per rank: run by torchrun --nproc-per-node 2.

Both are queued on the stream and nothing waits on the CPU between two messages; the clock stops when the
device has done them all.
"""

import os
import time

import torch
import torch.distributed
from measuring import WINDOW, argument_parser, pin, report


def ping_pong(first, sent, received, round_trips):
    for _ in range(round_trips):
        if first:
            torch.distributed.send(sent, 1)
            torch.distributed.recv(received, 1)
        else:
            torch.distributed.recv(received, 0)
            torch.distributed.send(sent, 0)


def windows(first, sent, received, count):
    """All sends of a window share one buffer, and so do its receives, as in osu_bw."""
    acknowledgement = torch.ones(1, dtype=torch.uint8, device=sent.device)
    for _ in range(count):
        for _ in range(WINDOW):
            if first:
                torch.distributed.send(sent, 1)
            else:
                torch.distributed.recv(received, 0)
        if first:
            torch.distributed.recv(acknowledgement, 1)
        else:
            torch.distributed.send(acknowledgement, 0)


def main():
    arguments = argument_parser(__doc__, memories=("cuda",)).parse_args()
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl", device_id=device)
    torch.distributed.barrier()
    pin(rank)  # this thread alone: those of NCCL and PyTorch have begun
    exchange = ping_pong if arguments.bench == "latency" else windows
    for step in arguments.steps:
        sent = torch.full((step.size_bytes,), 1, dtype=torch.uint8, device=device)
        received = torch.full_like(sent, 2)
        exchange(rank == 0, sent, received, step.warmup)
        torch.cuda.synchronize()
        start = time.perf_counter()
        exchange(rank == 0, sent, received, step.iterations)
        torch.cuda.synchronize()
        if rank == 0:
            report(arguments.bench, step, time.perf_counter() - start)
    torch.distributed.destroy_process_group()


main()
