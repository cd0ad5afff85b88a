// A block whose faces travel as arguments of an entry method: nothing waits, the last halo that arrives
// starts the next update.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "weft/weft.h"

#include "part.h"

namespace jacobi3d {

class MessagingBlock : public weft::Chare<MessagingBlock> {
 public:
  MessagingBlock(Problem problem, Reporting reporting);

  weft::Task<Times> run(int iterations);
  std::vector<double> values() { return part_.values(); }
  std::uint64_t checksum() { return part_.checksum(); }

  // The ghost points of one side for iteration `iteration`, from the neighbour there. Messages overtake one
  // another and neighbours run ahead, by one iteration at most, since they need this block's halo for the one
  // after.
  void halo(int iteration, int face, std::vector<double> values);
  // Updates as long as all halos are there.
  void advance();

 private:
  void accept(int face, std::vector<double> values);
  void send_halos();

  Part part_;
  int last_iteration_ = 0;
  std::size_t num_halos_ = 0;                         // that arrived for this iteration
  std::array<std::vector<double>, kNumFaces> early_;  // that are for the next one
  weft::Future<> finished_;
};

}  // namespace jacobi3d
