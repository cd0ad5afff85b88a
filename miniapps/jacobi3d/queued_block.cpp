#include "queued_block.h"

#include <optional>
#include <utility>

namespace jacobi3d {
namespace {

// A stream of CUDA has room for about 1000 pieces of work. Behind that the CPU would wait for the device in a launch,
// and the other blocks of its PE could not queue the sends for which the device waits. Two batches are in flight,
// because the device must not run dry while the CPU queues one. An iteration is up to 33 pieces: six sends of large
// faces of three each, six receives, three kernels with two events each.
constexpr int kBatchIterations = 14;

}  // namespace

QueuedBlock::QueuedBlock(Setup setup) : part_(runtime(), index(), std::move(setup)) {
  FaceBuffers& buffers = part_.buffers();
  for (int face : part_.faces()) {
    sides_.push_back({face, weft::QueuedChannel(*this, proxy()[part_.neighbour(face)], part_.field().place(),
                                                {buffers.incoming(face, 0), buffers.incoming(face, 1)})});
  }
}

weft::Task<> QueuedBlock::run(int iterations) {
  co_await connect();
  std::optional<weft::Operation> batch_before;
  for (int queued = 0; iterations > 0;) {
    const int count = queue_next(iterations);
    iterations -= count;
    queued += count;
    if (queued < kBatchIterations) continue;
    queued = 0;
    weft::Operation batch = part_.field().stream()->done();
    if (batch_before) co_await *batch_before;
    batch_before = std::move(batch);
  }
  if (batch_before) co_await *batch_before;
  co_await part_.finish();
}

// All blocks take their faces in one order, the lower one of a dimension first: no circle of blocks waits.
weft::Task<> QueuedBlock::connect() {
  if (std::exchange(is_connected_, true)) co_return;
  for (Side& side : sides_) co_await side.channel.connect();
}

int QueuedBlock::queue_next(int most) {
  // The first iterations load the kernels. A graph begins with slot 0: its messages have the landings that it names.
  if (part_.use_graphs() && part_.iteration() >= kNumSlots && part_.slot() == 0 && most >= kNumSlots) {
    if (graph_ == nullptr) {
      graph_ = part_.field().capture([this] {
        for (int slot = 0; slot < kNumSlots; ++slot) queue_iteration(slot);
      });
    }
    graph_->launch();
    part_.count_iterations(kNumSlots);
    return kNumSlots;
  }
  queue_iteration(part_.slot());
  part_.count_iterations(1);
  return 1;
}

void QueuedBlock::queue_iteration(int slot) {
  FaceBuffers& buffers = part_.buffers();
  const weft::memory::StreamHandle stream = part_.field().stream()->handle();
  buffers.queue_pack(slot);
  for (Side& side : sides_) side.channel.send(buffers.outgoing(side.face, slot), stream);
  for (Side& side : sides_) side.channel.recv(stream);
  buffers.unpack(slot);
  part_.field().update();
}

}  // namespace jacobi3d
