#include "messaging_block.h"

#include <utility>

namespace jacobi3d {
namespace {

std::span<double> values_of(const weft::Buffer& buffer) {
  return {static_cast<double*>(buffer.data), buffer.size_bytes / sizeof(double)};
}

}  // namespace

MessagingBlock::MessagingBlock(Setup setup) : part_(runtime(), index(), std::move(setup)) {
  for (HaloSlot& slot : slots_) slot.all_halos = weft::Future<>(runtime());
}

weft::Task<> MessagingBlock::run(int iterations) {
  for (int i = 0; i < iterations; ++i) co_await iterate();
  for (int number = 0; number < kNumSlots; ++number) co_await sent(number);
  co_await part_.finish();
}

weft::Task<> MessagingBlock::iterate() {
  const int number = part_.slot();
  co_await sent(number);
  co_await part_.buffers().pack(number);
  for (int face : part_.faces()) send_halo(face);
  if (!part_.faces().empty()) co_await slot(number).all_halos;
  // No halo of the iteration after the next arrives before this block has sent its faces for the next one.
  slot(number).num_halos = 0;
  slot(number).all_halos = weft::Future<>(runtime());
  part_.buffers().unpack(number);
  part_.update();
  // Alone in the grid: let others have a turn.
  if (part_.faces().empty()) co_await runtime().sleep(0);
}

void MessagingBlock::send_halo(int face) {
  const weft::Buffer buffer = part_.buffers().outgoing(face, part_.slot());
  auto neighbour = proxy()[part_.neighbour(face)];
  slot(part_.slot())
      .sends.push_back(neighbour.send<&MessagingBlock::halo>(part_.iteration(), opposite(face),
                                                             weft::nocopy(values_of(buffer), buffer.stream)));
}

weft::Task<> MessagingBlock::sent(int number) {
  for (weft::Operation& send : slot(number).sends) co_await send;
  slot(number).sends.clear();
}

void MessagingBlock::post_halo(int iteration, int face, weft::ReceiveBuffer<double>& values) {
  values.into(values_of(part_.buffers().incoming(face, iteration % kNumSlots)));
}

void MessagingBlock::halo(int iteration, int, weft::Payload<double>) {
  HaloSlot& arrived = slot(iteration % kNumSlots);
  if (++arrived.num_halos == part_.faces().size()) arrived.all_halos.set();
}

}  // namespace jacobi3d
