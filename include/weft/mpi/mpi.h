/* The C interface of MPI 5.0 with its standard binary interface (ABI), in C and C++.
 *
 * The names, the values, the layout of MPI_Status and the prototypes are those of the MPI standard 5.0, chapter
 * "Application Binary Interface" and appendix A. A program that was compiled with this header runs with any
 * library that offers libmpi_abi.so.1, and the other way round.
 *
 * `weft mpicc` and `weft mpicxx` add this folder to the include path, so programs write #include <mpi.h>.
 */
#ifndef WEFT_MPI_MPI_H
#define WEFT_MPI_MPI_H

#include "mpi_constants.h"
#include "mpi_fortran.h"
#include "mpi_functions.h"

#endif /* WEFT_MPI_MPI_H */
