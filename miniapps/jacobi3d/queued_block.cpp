#include "queued_block.h"

#include <utility>
#include <vector>

namespace jacobi3d {
namespace {

// Of an iteration on a stream: two launches and six copies of large faces, three kernels with two events each.
constexpr int kMostPieces = 17;

}  // namespace

QueuedBlock::QueuedBlock(Setup setup)
    : part_(runtime(), index(), std::move(setup)),
      iterations_(
          *part_.field().stream(), kMostPieces, [this](int slot) { queue_iteration(slot); },
          [this](int number) { part_.count_iterations(number); }) {
  FaceBuffers& buffers = part_.buffers();
  for (int face : part_.faces()) {
    sides_.push_back({face, weft::QueuedChannel(*this, proxy()[part_.neighbour(face)], part_.field().place(),
                                                {buffers.incoming(face, 0), buffers.incoming(face, 1)})});
  }
}

weft::Task<> QueuedBlock::run(int iterations) {
  co_await prepare();
  co_await iterations_.run(iterations);
  co_await part_.finish();
}

weft::Task<> QueuedBlock::prepare() {
  if (std::exchange(is_prepared_, true)) co_return;
  // All blocks take their faces in one order, the lower one of a dimension first: no circle of blocks waits.
  for (Side& side : sides_) co_await side.channel.connect();
  Field& field = part_.field();
  for (int slot = 0; slot < kNumSlots; ++slot) {
    part_.buffers().queue_pack(slot);
    part_.buffers().unpack(slot);  // ghost points, which get their values before they are used
  }
  field.rehearse_update();
  co_await field.done();
  if (!part_.use_graphs()) co_return;
  iterations_.capture([&field](const auto& queue) { return field.capture(queue); });
}

void QueuedBlock::queue_iteration(int slot) {
  FaceBuffers& buffers = part_.buffers();
  const weft::memory::StreamHandle stream = part_.field().stream()->handle();
  buffers.queue_pack(slot);
  std::vector<weft::QueuedChannel::Side> exchanged;
  for (Side& side : sides_) exchanged.push_back({&side.channel, buffers.outgoing(side.face, slot)});
  weft::QueuedChannel::exchange_all(exchanged, stream);
  buffers.unpack(slot);
  part_.field().update();
}

}  // namespace jacobi3d
