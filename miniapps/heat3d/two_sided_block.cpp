#include "two_sided_block.h"

namespace heat3d {

using jacobi3d::kNumSlots;

TwoSidedBlock::TwoSidedBlock(Setup setup)
    : part_(runtime(), index(), setup), buffers_(runtime(), part_.field(), part_.faces(), false) {
  for (int face : part_.faces())
    sides_.push_back({face, weft::Channel(*this, proxy()[part_.neighbour(face)])});
}

weft::Task<> TwoSidedBlock::run(int num_steps) {
  if (num_steps > 0) post_receives(part_.num_steps());
  for (int i = 0; i < num_steps; ++i) co_await step(i == num_steps - 1);
  for (HaloSlot& slot : slots_) co_await end(slot.sends);
  co_await part_.finish();
}

// The slot is free: its last faces were unpacked in the step before last.
void TwoSidedBlock::post_receives(int step) {
  for (Side& side : sides_)
    slot(step).receives.push_back(side.channel.recv(buffers_.incoming(side.face, step % kNumSlots)));
}

weft::Task<> TwoSidedBlock::step(bool is_last) {
  const int number = part_.num_steps();
  HaloSlot& now = slot(number);
  if (!is_last) post_receives(number + 1);
  co_await end(now.sends);
  co_await buffers_.pack(number % kNumSlots);
  for (Side& side : sides_)
    now.sends.push_back(side.channel.send(buffers_.outgoing(side.face, number % kNumSlots)));
  co_await end(now.receives);
  buffers_.unpack(number % kNumSlots);
  part_.update();
  // Alone in the body: let others have a turn.
  if (sides_.empty()) co_await weft::yield_now(runtime());
}

weft::Task<> TwoSidedBlock::end(std::vector<weft::Operation>& operations) {
  for (weft::Operation& operation : operations) co_await operation;
  operations.clear();
}

}  // namespace heat3d
