#include "queued/pipe.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "memory/memory.h"
#include "queued/peer_memory.h"

namespace weft::queued {

using memory::DeviceStep;

namespace {

// In front of each place, with the label at its end: the data stays aligned as the ring is.
constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kPlaceBytes = kHeaderBytes + Pipe::kPieceBytes;
constexpr std::size_t kRingBytes = kPlaceBytes * Pipe::kNumPlaces;

}  // namespace

struct Pipe::Words {
  std::uint32_t arrived;   // pieces that the peer has written
  std::uint32_t received;  // the count of receives
  std::uint32_t freed;     // pieces that the peer has taken out
  std::uint32_t sent;      // the count of sends
};

struct Pipe::Held {
  rma::Segment words;
  rma::Segment places;
  Words* own = nullptr;  // the device's addresses, as are the others
  std::byte* own_places = nullptr;
  Words* peers = nullptr;
  std::byte* peer_places = nullptr;
  std::vector<std::shared_ptr<void>> peer_keepers;
};

Pipe::Pipe(rma::GlobalMemory& memory, memory::Place device, StreamWatch& watch,
           std::function<std::string()> name)
    : memory_(memory), device_(device), watch_(watch), name_(std::move(name)) {}

Pipe::~Pipe() = default;

runtime::Task<PipeGrant> Pipe::grant() {
  auto held = std::make_shared<Held>();
  held->words = co_await make_words(memory_, sizeof(Words), device_);
  held->places = memory_.make_segment(kRingBytes, device_);
  held->own = static_cast<Words*>(held->words.buffer().data);
  held->own_places = static_cast<std::byte*>(held->places.buffer().data);
  held_ = std::move(held);
  co_return PipeGrant{held_->words.address(), held_->places.address()};
}

runtime::Task<> Pipe::accept(int pe, PipeGrant grant) {
  if (grant.words.pe() != pe || grant.places.pe() != pe)
    base::refuse_claim(base::format("{}: PE {} grants places that are none", name_(), pe));
  PeerMemory peer(memory_, device_, name_);
  held_->peers = static_cast<Words*>(co_await peer.reach(grant.words, sizeof(Words), alignof(Words)));
  held_->peer_places = static_cast<std::byte*>(co_await peer.reach(grant.places, kRingBytes, kHeaderBytes));
  held_->peer_keepers = peer.take_keepers();
}

DeviceStep Pipe::step_of(std::size_t size_bytes, std::uint32_t label, std::size_t piece) const {
  DeviceStep step;
  step.size_bytes = std::min(size_bytes - piece * kPieceBytes, kPieceBytes);
  step.num_places = kNumPlaces;
  step.place_bytes = kPlaceBytes;
  // The size of the whole message: a receive of another size fails before it copies.
  step.label = std::uint64_t{label} << 32 | size_bytes % (std::uint64_t{1} << 32);
  return step;
}

StepQueue Pipe::queue_of(memory::StreamHandle stream) {
  return {*memory_.runtime().memory().backend(device_.kind), device_, stream, watch_};
}

void Pipe::send_piece(memory::ConstBuffer message, std::uint32_t label, std::size_t piece, StepQueue& queue) {
  DeviceStep step = step_of(message.size_bytes, label, piece);
  step.count = &held_->own->sent;
  step.before.add({&held_->own->freed, 1 - kNumPlaces});
  step.rings = memory::kRingOfTargets;
  step.to = held_->peer_places + kHeaderBytes;
  step.from = static_cast<const std::byte*>(message.data) + piece * kPieceBytes;
  step.signals.add({&held_->peers->arrived, 1});
  queue.add(step, held_);
}

void Pipe::receive_piece(memory::Buffer message, std::uint32_t label, std::size_t piece, StepQueue& queue) {
  DeviceStep step = step_of(message.size_bytes, label, piece);
  step.count = &held_->own->received;
  step.before.add({&held_->own->arrived, 1});
  step.rings = memory::kRingOfSources;
  step.from = held_->own_places + kHeaderBytes;
  step.to = static_cast<std::byte*>(message.data) + piece * kPieceBytes;
  step.signals.add({&held_->peers->freed, 1});
  queue.add(step, held_);
}

void Pipe::send(memory::ConstBuffer message, std::uint32_t label, memory::StreamHandle stream) {
  StepQueue queue = queue_of(stream);
  for (std::size_t i = 0; i < num_pieces(message.size_bytes); ++i) send_piece(message, label, i, queue);
  queue.flush();
}

void Pipe::receive(memory::Buffer message, std::uint32_t label, memory::StreamHandle stream) {
  StepQueue queue = queue_of(stream);
  for (std::size_t i = 0; i < num_pieces(message.size_bytes); ++i) receive_piece(message, label, i, queue);
  queue.flush();
}

std::vector<runtime::Future<>> Pipe::begin_close() {
  if (held_ == nullptr) return {};
  const std::shared_ptr<Held> held = std::exchange(held_, nullptr);
  held->peer_keepers.clear();
  std::vector<runtime::Future<>> released;
  released.push_back(std::move(held->words).release());
  released.push_back(std::move(held->places).release());
  return released;
}

runtime::Task<> Pipe::close() {
  const std::vector<runtime::Future<>> released = begin_close();
  for (const runtime::Future<>& one : released) co_await one;
}

}  // namespace weft::queued
