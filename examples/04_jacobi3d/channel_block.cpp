#include "channel_block.h"

#include <utility>

namespace jacobi3d {

ChannelBlock::ChannelBlock(Problem problem, Reporting reporting)
    : part_(problem, index(), std::move(reporting)) {
  for (int face : part_.faces()) {
    std::vector<double> buffer(part_.face_points(face));
    sides_.push_back({face, weft::Channel(*this, proxy()[part_.neighbour(face)]), buffer, buffer});
  }
}

weft::Task<Times> ChannelBlock::run(int iterations) {
  part_.start_clock();
  for (int i = 0; i < iterations; ++i) co_await iterate();
  co_return part_.times();
}

weft::Task<> ChannelBlock::iterate() {
  std::vector<weft::Operation> receives, sends;
  receives.reserve(sides_.size());
  sends.reserve(sides_.size());
  for (Side& side : sides_) receives.push_back(side.channel.recv(side.incoming));
  for (Side& side : sides_) {
    part_.pack(side.face, side.outgoing);
    sends.push_back(side.channel.send(side.outgoing));
  }
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    co_await receives[i];
    part_.unpack(sides_[i].face, sides_[i].incoming);
  }
  part_.update();
  // The outgoing buffers are free again; by now they mostly are.
  for (weft::Operation& send : sends) co_await send;
  // Alone in the grid: let others have a turn.
  if (sides_.empty()) co_await runtime().sleep(0);
}

}  // namespace jacobi3d
