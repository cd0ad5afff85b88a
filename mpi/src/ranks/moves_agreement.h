// The agreement of all ranks of a job before some of them move.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/mpi/objects/error.h"

namespace weft::mpi {

// The facts that each rank tells the others before a move.
struct MoveWish {
  std::int32_t pe = 0;
  std::uint64_t fingerprint = 0;  // of the addresses in its process
  double load_s = 0;
  char obstacle[112] = {};  // why it cannot move; empty: it can
};

// The wish of the rank that runs, to go to that PE. It has no load.
MoveWish wish_of_this_rank(int pe);
// All ranks call it. The wishes by rank.
std::vector<MoveWish> wishes_of_all(const MoveWish& mine);
// Why the ranks cannot go to these PEs. `pe_of_rank` is empty if the ranks only want to be able to move. `what`: for the sentence.
Error obstacle_to_moves(const std::vector<MoveWish>& wishes, const std::vector<int>& pe_of_rank,
                        std::string_view what = "move");
// Plans the move if it changes anything. REQUIRES: there is no obstacle, and all ranks call it with the same places.
void plan_moves(std::vector<int> pe_of_rank);
// Plans to protect all ranks, in a process of several ranks. REQUIRES: as plan_moves().
void plan_protection();
// Moves or protects, if the ranks have planned to. Nothing that refers to this process may be on the stack of the caller.
Error move_as_planned();

}  // namespace weft::mpi
