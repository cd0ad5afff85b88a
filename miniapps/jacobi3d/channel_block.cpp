#include "channel_block.h"

#include <utility>

namespace jacobi3d {

ChannelBlock::ChannelBlock(Setup setup) : part_(runtime(), index(), std::move(setup)) {
  for (int face : part_.faces())
    sides_.push_back({face, weft::Channel(*this, proxy()[part_.neighbour(face)])});
}

weft::Task<> ChannelBlock::run(int iterations) {
  for (int i = 0; i < iterations; ++i) co_await iterate();
  for (int slot = 0; slot < kNumSlots; ++slot) co_await sent(slot);
  co_await part_.finish();
}

weft::Task<> ChannelBlock::iterate() {
  const int slot = part_.slot();
  FaceBuffers& buffers = part_.buffers();
  std::vector<weft::Operation> receives;
  receives.reserve(sides_.size());
  for (Side& side : sides_) receives.push_back(side.channel.recv(buffers.incoming(side.face, slot)));
  co_await sent(slot);
  co_await buffers.pack(slot);
  auto& sends = sends_[static_cast<std::size_t>(slot)];
  for (Side& side : sides_) sends.push_back(side.channel.send(buffers.outgoing(side.face, slot)));
  for (weft::Operation& receive : receives) co_await receive;
  buffers.unpack(slot);
  part_.update();
  // Alone in the grid: let others have a turn.
  if (sides_.empty()) co_await runtime().sleep(0);
}

weft::Task<> ChannelBlock::sent(int slot) {
  auto& sends = sends_[static_cast<std::size_t>(slot)];
  for (weft::Operation& send : sends) co_await send;
  sends.clear();
}

}  // namespace jacobi3d
