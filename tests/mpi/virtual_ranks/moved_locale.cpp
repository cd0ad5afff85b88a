// A rank whose program has set a C++ locale for the process. Rank 0 then sets the classic one, and all ranks move.
#include <mpi.h>
#include <weft_mpi.h>

#include <cstdio>
#include <locale>
#include <string>

namespace {

struct Comma final : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0) std::locale::global(std::locale(std::locale(), new Comma));
  const int first = Weft_migrate((Weft_pe() + 1) % Weft_num_pes());
  if (rank == 0) std::locale::global(std::locale::classic());
  const int second = Weft_migrate((Weft_pe() + 1) % Weft_num_pes());
  std::printf("rank %d: %s, then %s\n", rank, first == MPI_SUCCESS ? "moved" : "refused",
              second == MPI_SUCCESS ? "moved" : "refused");
  MPI_Finalize();
  return 0;
}
