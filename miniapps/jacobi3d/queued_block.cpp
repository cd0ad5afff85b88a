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
  co_await prepare();
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
  graph_ = field.capture([this] {
    for (int slot = 0; slot < kNumSlots; ++slot) queue_iteration(slot);
  });
}

int QueuedBlock::queue_next(int most) {
  // A graph begins with slot 0: its messages have the landings that it names.
  if (graph_ != nullptr && part_.slot() == 0 && most >= kNumSlots) {
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
