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

using memory::MessageEnd;
using memory::MessageSide;

namespace {

// The memory of a message: the label, packets, and data, which is aligned as the ring is. The first two are memory of packets alone.
struct alignas(memory::kPacketPairBytes) Place {
  std::byte label[memory::kPacketPairBytes];
  std::byte packets[memory::packet_bytes(memory::kMostLabelledPacketBytes)];
  std::byte data[Pipe::kPieceBytes];
};

}  // namespace

// What an end has, in memory of its device.
struct Pipe::Ring {
  // --- Of messages that arrive here
  std::uint32_t arrived[kNumPlaces][memory::kMaxMessageParts];  // written by the peer
  memory::MessageCount received;
  std::uint32_t taken[kNumPlaces];
  // --- Of messages to the peer
  std::uint32_t freed[kNumPlaces];  // written by the peer
  memory::MessageCount sent;

  Place places[kNumPlaces];
};

struct Pipe::Held {
  rma::Segment memory;
  Ring* own = nullptr;  // the device's address, as is the other
  Ring* peers = nullptr;
  std::vector<std::shared_ptr<void>> peer_keepers;
};

Pipe::Pipe(rma::GlobalMemory& memory, memory::Place device, StreamWatch& watch,
           std::function<std::string()> name)
    : memory_(memory), device_(device), watch_(watch), name_(std::move(name)) {}

Pipe::~Pipe() = default;

runtime::Task<rma::GlobalAddress> Pipe::grant() {
  auto held = std::make_shared<Held>();
  held->memory = co_await make_words(memory_, sizeof(Ring), device_);
  held->own = static_cast<Ring*>(held->memory.buffer().data);
  held_ = std::move(held);
  co_return held_->memory.address();
}

runtime::Task<> Pipe::accept(int pe, rma::GlobalAddress grant) {
  if (grant.pe() != pe)
    base::refuse_claim(base::format("{}: PE {} grants places that are none", name_(), pe));
  PeerMemory peer(memory_, device_, name_);
  held_->peers = static_cast<Ring*>(co_await peer.reach(grant, sizeof(Ring), alignof(Ring)));
  held_->peer_keepers = peer.take_keepers();
}

MessageEnd Pipe::end_of(std::size_t size_bytes, std::uint32_t label, std::size_t piece) {
  MessageEnd end =
      memory::copy_end(nullptr, nullptr, std::min(size_bytes - piece * kPieceBytes, kPieceBytes));
  end.num_places = kNumPlaces;
  end.place_bytes = sizeof(Place);
  // The size of the whole message: a receive of another size fails. On a GPU its buffer may have been written by then.
  end.label = std::uint64_t{label} << 32 | size_bytes % (std::uint64_t{1} << 32);
  return end;
}

void Pipe::send_piece(memory::ConstBuffer message, std::uint32_t label, std::size_t piece,
                      MessageQueue& queue) {
  MessageEnd end = end_of(message.size_bytes, label, piece);
  const bool is_small = end.size_bytes <= memory::kMostLabelledPacketBytes;
  Place& place = held_->peers->places[0];
  end.side = is_small ? MessageSide::kSendPackets : MessageSide::kSend;
  end.to = is_small ? place.packets : place.data;
  end.from = static_cast<const std::byte*>(message.data) + piece * kPieceBytes;
  end.count = &held_->own->sent;
  end.waits = held_->own->freed;
  end.signals = held_->peers->arrived[0];
  end.labels = place.label;
  queue.add(end, watch_, held_);
}

void Pipe::receive_piece(memory::Buffer message, std::uint32_t label, std::size_t piece,
                         MessageQueue& queue) {
  MessageEnd end = end_of(message.size_bytes, label, piece);
  const bool is_small = end.size_bytes <= memory::kMostLabelledPacketBytes;
  Place& place = held_->own->places[0];
  end.side = is_small ? MessageSide::kTakePackets : MessageSide::kTake;
  end.from = is_small ? place.packets : place.data;
  end.to = static_cast<std::byte*>(message.data) + piece * kPieceBytes;
  end.count = &held_->own->received;
  end.waits = held_->own->arrived[0];
  end.signals = held_->peers->freed;
  end.taken = held_->own->taken;
  end.labels = place.label;
  queue.add(end, watch_, held_);
}

std::vector<runtime::Future<>> Pipe::begin_close() {
  if (held_ == nullptr) return {};
  const std::shared_ptr<Held> held = std::exchange(held_, nullptr);
  held->peer_keepers.clear();
  std::vector<runtime::Future<>> released;
  released.push_back(std::move(held->memory).release());
  return released;
}

runtime::Task<> Pipe::close() {
  const std::vector<runtime::Future<>> released = begin_close();
  for (const runtime::Future<>& one : released) co_await one;
}

}  // namespace weft::queued
