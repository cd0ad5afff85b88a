// A block with a channel to each neighbour: it posts its receives, sends its faces, waits, updates.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "weft/weft.h"

#include "part.h"

namespace jacobi3d {

class ChannelBlock : public weft::Chare<ChannelBlock> {
 public:
  explicit ChannelBlock(Setup setup);

  weft::Task<> run(int iterations);
  weft::Task<std::vector<double>> values() { return part_.values(); }
  weft::Task<std::uint64_t> checksum() { return part_.checksum(); }

 private:
  struct Side {
    int face = 0;
    weft::Channel channel;
  };

  weft::Task<> iterate();
  // Until the slot's buffers are free again.
  weft::Task<> sent(int slot);

  Part part_;
  std::vector<Side> sides_;
  std::array<std::vector<weft::Operation>, kNumSlots> sends_;
};

}  // namespace jacobi3d
