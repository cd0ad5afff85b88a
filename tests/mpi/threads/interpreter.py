"""Threads of Python that call MPI at the same time, with functions in Python that MPI calls.

Such a function needs the interpreter, which another thread may hold that waits for MPI.
"""

import threading

from mpi4py import MPI

ROUNDS = 60
world = MPI.COMM_WORLD
errors = []


def add(one, other, datatype):
    world.Get_rank()  # holds the interpreter
    sums = memoryview(other).cast("i")
    for place, value in enumerate(memoryview(one).cast("i")):
        sums[place] += value


def reduce_and_keep(comm):
    operator = MPI.Op.Create(add, commute=True)
    key = MPI.Comm.Create_keyval(copy_fn=lambda o, k, v: v, delete_fn=lambda o, k, v: world.Get_size())
    for number in range(ROUNDS):
        assert comm.allreduce(number) == number * world.size
        sums = memoryview(bytearray(40)).cast("i")
        values = memoryview(bytearray(40)).cast("i")
        values[3] = number
        comm.Allreduce([values, MPI.INT], [sums, MPI.INT], op=operator)
        assert sums[3] == number * world.size
        comm.Set_attr(key, number)
        copy = comm.Dup()
        assert copy.Get_attr(key) == number
        copy.Free()
        comm.Delete_attr(key)
    operator.Free()


def talk_to_itself(comm):
    for number in range(ROUNDS * 5):
        request = comm.isend(number, dest=comm.rank, tag=number)
        world.Get_size()
        assert comm.recv(source=MPI.ANY_SOURCE, tag=number) == number
        request.wait()


def run(function, comm):
    try:
        function(comm)
    except BaseException as error:
        errors.append(error)
        raise


assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
threads = [
    threading.Thread(target=run, args=(function, world.Dup()))
    for function in (reduce_and_keep, reduce_and_keep, talk_to_itself, talk_to_itself)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if errors:
    world.Abort(1)
if world.rank == 0:
    print("threads of Python: as expected")
