// Runs a program of rank_programs.h as several ranks on each PE.
//
//     virtual_ranks_probe PROGRAM NUM_RANKS block|round-robin
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ranks/fiber.h"
#include "tests/unit/mpi_abi/rank_programs.h"

int main(int argc, char** argv) {
  if (!weft::mpi::Fiber::are_available()) {
    std::fputs("virtual_ranks_probe: this build has no Boost.Context\n", stderr);
    return 77;
  }
  const auto program = weft::testing::rank_programs().find(argc == 4 ? argv[1] : "");
  const char* const pe = std::getenv("WEFT_PE");
  const char* const num_pes = std::getenv("WEFT_NUM_PES");
  if (program == weft::testing::rank_programs().end() || pe == nullptr || num_pes == nullptr) {
    std::fputs("weft run -n N virtual_ranks_probe PROGRAM NUM_RANKS block|round-robin\n", stderr);
    return 2;
  }
  const int pes = std::atoi(num_pes);
  const int ranks = std::atoi(argv[2]);
  const bool in_blocks = std::string(argv[3]) == "block";
  std::vector<int> pe_of_rank;
  for (int rank = 0; rank < ranks; ++rank) {
    // Backwards, so that rank 0 is not on PE 0.
    pe_of_rank.push_back(in_blocks ? rank * pes / ranks : pes - 1 - rank % pes);
  }
  return weft::testing::run_as_ranks(program->second, std::atoi(pe), pes, pe_of_rank);
}
