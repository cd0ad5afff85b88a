// Wrong reductions of ranks that work together, argument 1: "counts", 10 elements on rank 0 and 5 on the others; "forms", types of
// one signature and different extents; "throws", an operator that throws. Every rank gets an error and goes on.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace {

int rank = 0;

void throws(void*, void*, int*, MPI_Datatype*) { throw std::runtime_error("the operator"); }

void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(*type, &lower, &extent);
  for (int i = 0; i < *count; ++i) {
    double values[2];
    std::memcpy(&values[0], static_cast<char*>(in) + i * extent, sizeof(double));
    std::memcpy(&values[1], static_cast<char*>(inout) + i * extent, sizeof(double));
    values[1] += values[0];
    std::memcpy(static_cast<char*>(inout) + i * extent, &values[1], sizeof(double));
  }
}

int reduce(const char* what) {
  std::vector<double> from(4000, 1.0);
  std::vector<double> to(4000, 0.0);
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int error = 0;
  if (std::strcmp(what, "counts") == 0)
    return MPI_Reduce(from.data(), to.data(), rank == 0 ? 10 : 5, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (std::strcmp(what, "throws") == 0) {
    MPI_Op_create(throws, 1, &op);
    error = MPI_Allreduce(from.data(), to.data(), 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
  } else {
    MPI_Op_create(add, 1, &op);
    MPI_Type_create_resized(MPI_DOUBLE, 0, rank == 0 ? 32 : 8, &type);
    MPI_Type_commit(&type);
    error = MPI_Allreduce(from.data(), to.data(), 1000, type, op, MPI_COMM_WORLD);
    MPI_Type_free(&type);
  }
  MPI_Op_free(&op);
  return error;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int error_class = 0;
  MPI_Error_class(reduce(argv[1]), &error_class);
  MPI_Barrier(MPI_COMM_WORLD);
  std::printf("rank %d: %s\n", rank,
              error_class == MPI_ERR_TRUNCATE ? "truncated"
              : error_class == MPI_ERR_INTERN ? "intern"
                                              : "no such error");
  MPI_Finalize();
  return 0;
}
