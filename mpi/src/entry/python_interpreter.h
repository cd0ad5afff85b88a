// The Python interpreter that runs the program, if one does: programs with mpi4py.
//
// Its functions are looked for in the process, and are those of Python's stable interface. So the library needs no Python.
#pragma once

namespace weft::mpi {

// From now on an exception that the program does not handle is noted, after the traceback has been printed. mpi4py calls MPI_Finalize
// then, in which a rank would wait for the others, which wait for it. Does nothing in other processes, and the second time.
void watch_exceptions_of_python();

// Whether there was such an exception. An interactive interpreter goes on after one, so there it is not noted.
bool has_python_failed();

// Whether the program uses mpi4py.futures and the caller is a thread of Python other than the first. An MPIPoolExecutor starts
// its workers in one: an exception there is printed, and nothing else happens.
bool is_on_thread_of_executor();

}  // namespace weft::mpi
