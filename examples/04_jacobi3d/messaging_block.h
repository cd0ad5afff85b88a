// A block whose faces travel as arguments of an entry method.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "weft/weft.h"

#include "part.h"

namespace jacobi3d {

class MessagingBlock : public weft::Chare<MessagingBlock> {
 public:
  explicit MessagingBlock(Setup setup);

  weft::Task<> run(int iterations);
  weft::Task<std::vector<double>> values() { return part_.values(); }
  weft::Task<std::uint64_t> checksum() { return part_.checksum(); }

  // The ghost points of one side for iteration `iteration`, from the neighbour there. Messages overtake one
  // another and neighbours run ahead, by one iteration at most, since they need this block's halo for the one
  // after.
  void halo(int iteration, int face, std::vector<double> values);

 private:
  // What came for the iterations that use a slot.
  struct Arrivals {
    std::array<std::vector<double>, kNumFaces> values;
    std::size_t count = 0;
    weft::Future<> all;
  };

  weft::Task<> send_halos(int slot);
  void send_halo(int face, std::vector<double> values);
  void unpack(int slot);
  Arrivals& arrivals(int slot) { return arrivals_[static_cast<std::size_t>(slot)]; }

  Part part_;
  std::array<Arrivals, kNumSlots> arrivals_;
};

}  // namespace jacobi3d
