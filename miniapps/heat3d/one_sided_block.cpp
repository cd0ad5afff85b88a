#include "one_sided_block.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

namespace heat3d {
namespace {

using jacobi3d::kNumFaces;
using jacobi3d::kNumSlots;

// Each word has a cache line of its own: different PEs store to them.
constexpr std::size_t kWordDistance = 64 / sizeof(std::uint64_t);
constexpr std::size_t kNumWords = std::size_t{kNumFaces} * kNumSlots;
// How often a word is read before the block lets others have a turn: about as long as a cache line travels.
constexpr int kReads = 32;
// After so many turns without a face, the PE lets other processes have the core. They may be what it waits for.
constexpr int kTurns = 64;

std::size_t word_of(int face, int slot) {
  return static_cast<std::size_t>(face * kNumSlots + slot) * kWordDistance;
}

// A segment has at least one byte; a block without neighbours has no faces.
std::size_t num_incoming(const jacobi3d::Field& field, const std::vector<int>& faces) {
  return std::max<std::size_t>(1, jacobi3d::FaceBuffers::num_incoming(field, faces));
}

}  // namespace

OneSidedBlock::OneSidedBlock(Setup setup)
    : part_(runtime(), index(), setup),
      incoming_(pgas().make_segment<double>(num_incoming(part_.field(), part_.faces()), part_.place())),
      arrived_(pgas().make_segment<std::uint64_t>(kNumWords * kWordDistance)),
      buffers_(runtime(), part_.field(), part_.faces(), incoming_.buffer()) {}

ReceiveBuffers OneSidedBlock::receive_buffers() const {
  const auto* const first = static_cast<const double*>(incoming_.buffer().data);
  ReceiveBuffers receive_buffers;
  for (int face : part_.faces()) {
    ReceiveBuffer& receive_buffer = receive_buffers[static_cast<std::size_t>(face)];
    for (int slot = 0; slot < kNumSlots; ++slot) {
      const auto i = static_cast<std::size_t>(slot);
      const auto* const values = static_cast<const double*>(buffers_.incoming(face, slot).data);
      receive_buffer.values[i] = incoming_.pointer<double>(values - first);
      receive_buffer.step[i] =
          arrived_.pointer<std::uint64_t>(static_cast<std::ptrdiff_t>(word_of(face, slot)));
    }
  }
  return receive_buffers;
}

weft::Task<> OneSidedBlock::connect(std::vector<ReceiveBuffers> all) {
  const weft::Shape shape = proxy().shape();
  for (int face : part_.faces()) {
    const ReceiveBuffers& neighbour = all.at(shape.linear(part_.neighbour(face)));
    const ReceiveBuffer receive_buffer = neighbour[static_cast<std::size_t>(jacobi3d::opposite(face))];
    co_await pgas().learn(receive_buffer.values[0].address());
    co_await pgas().learn(receive_buffer.step[0].address());
    sides_.push_back({face, receive_buffer});
  }
}

weft::Task<> OneSidedBlock::run(int num_steps) {
  for (int i = 0; i < num_steps; ++i) co_await step();
  co_await part_.finish();
}

weft::Task<> OneSidedBlock::step() {
  const int number = part_.num_steps();
  co_await buffers_.pack(number % kNumSlots);
  co_await send_faces(number);
  co_await wait_for_faces(number);
  buffers_.unpack(number % kNumSlots);
  part_.update();
  // Alone in the body: let others have a turn.
  if (sides_.empty()) co_await weft::yield_now(runtime());
}

// All puts are started before the first is awaited. When a put is over, its data is visible to a PE that reads the number.
weft::Task<> OneSidedBlock::send_faces(int step) {
  const auto slot = static_cast<std::size_t>(step % kNumSlots);
  std::vector<weft::pgas::Done> puts;
  puts.reserve(sides_.size());
  for (const Side& side : sides_)
    puts.push_back(pgas().put_memory(buffers_.outgoing(side.face, step % kNumSlots),
                                     side.neighbour.values[slot].address()));
  for (std::size_t i = 0; i < puts.size(); ++i) {
    co_await puts[i];
    pgas().atomic_store(sides_[i].neighbour.step[slot], static_cast<std::uint64_t>(step) + 1).detach();
  }
}

bool OneSidedBlock::has_arrived(int face, int step) const {
  std::uint64_t& word = arrived_.elements<std::uint64_t>()[word_of(face, step % kNumSlots)];
  return std::atomic_ref(word).load(std::memory_order_acquire) == static_cast<std::uint64_t>(step) + 1;
}

weft::Task<> OneSidedBlock::wait_for_faces(int step) {
  for (const Side& side : sides_) {
    for (int num_reads = 0; !has_arrived(side.face, step);) {
      if (++num_reads % kReads != 0) continue;
      if (num_reads % (kReads * kTurns) == 0) std::this_thread::yield();
      co_await weft::yield_now(runtime());
    }
  }
}

}  // namespace heat3d
