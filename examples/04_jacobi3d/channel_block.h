// A block with a channel to each neighbour: it posts its receives, sends its faces, waits, updates. Its
// buffers are made once.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "weft/weft.h"

#include "part.h"

namespace jacobi3d {

class ChannelBlock : public weft::Chare<ChannelBlock> {
 public:
  ChannelBlock(Problem problem, Reporting reporting);

  weft::Task<Times> run(int iterations);
  std::vector<double> values() { return part_.values(); }
  std::uint64_t checksum() { return part_.checksum(); }

 private:
  struct Side {
    int face = 0;
    weft::Channel channel;
    std::vector<double> outgoing;
    std::vector<double> incoming;
  };

  weft::Task<> iterate();

  Part part_;
  std::vector<Side> sides_;
};

}  // namespace jacobi3d
