#include "queued/link.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "base/value_or_throw.h"
#include "memory/memory.h"
#include "queued/peer_memory.h"

namespace weft::queued {

using base::Error;
using base::StatusCode;

namespace {

using memory::kMaxMessageParts;
using memory::MessageEnd;
using memory::MessageSide;

bool has_packets(std::size_t size_bytes) { return size_bytes <= memory::kMostPacketBytes; }

// The packets of all landings.
std::size_t all_packet_bytes(std::size_t size_bytes, std::size_t num_landings) {
  return has_packets(size_bytes) ? memory::packet_bytes(size_bytes) * num_landings : 0;
}

}  // namespace

// An end's words, in memory of its device, and behind them the packets that arrive. Each is of one landing, and those of parts of
// one part of its message.
struct alignas(16) Link::Words {
  using List = std::uint32_t[kMaxLandings];
  using Counts = memory::MessageCount[kMaxLandings];
  using Parts = std::uint32_t[kMaxLandings][kMaxMessageParts];
  // --- Of messages that arrive here
  Parts arrived;    // messages that the peer has written
  Counts received;  // of receives
  // --- Of messages to the peer
  List freed;   // messages that the peer has done with
  Counts sent;  // of sends

  std::byte* packets() { return reinterpret_cast<std::byte*>(this + 1); }
};

struct Link::Held {
  rma::Segment words;
  std::vector<rma::Segment> landings;
  Words* own = nullptr;  // the device's address, as are the others
  std::shared_ptr<void> keeper;
  Words* peers = nullptr;
  std::vector<std::byte*> peer_landings;
  std::vector<std::shared_ptr<void>> peer_keepers;
};

Link::Link(rma::GlobalMemory& memory, memory::Place device, std::vector<memory::Buffer> landings,
           std::function<std::string()> name)
    : memory_(memory),
      device_(device),
      landings_(std::move(landings)),
      name_(std::move(name)),
      watch_(memory.runtime(), "a transfer that a stream orders") {
  if (device_.is_host() || memory_.runtime().memory().backend(device_.kind) == nullptr) {
    refuse(StatusCode::kInvalidArgument,
           base::format("{} is no device of this process, and streams of devices order its transfers",
                        memory::place_name(device_)));
  }
  // With one landing, two ends that both send before they receive would wait for each other in the second round.
  if (landings_.size() == 1 || landings_.size() > kMaxLandings) {
    refuse(StatusCode::kInvalidArgument,
           base::format("it has {} landing{}: give it 2 to {}, or none if it only sends", landings_.size(),
                        landings_.size() == 1 ? "" : "s", kMaxLandings));
  }
  for (const memory::Buffer& landing : landings_) {
    if (landing.size_bytes == 0 || landing.size_bytes != landings_.front().size_bytes) {
      refuse(StatusCode::kInvalidArgument,
             base::format("its landings have {} and {} bytes; all have the size of a message, which is not 0",
                          landings_.front().size_bytes, landing.size_bytes));
    }
    if (landing.place != device_) {
      refuse(StatusCode::kInvalidArgument,
             base::format("a landing is on {}, and its device is {}", memory::place_name(landing.place),
                          memory::place_name(device_)));
    }
  }
}

Link::~Link() = default;

void Link::refuse(StatusCode code, const std::string& why) const {
  throw Error(code, base::format("{}: {}", name_(), why));
}

void Link::expect_open() const {
  if (!is_open_) refuse(StatusCode::kClosed, "it is not connected; await connect() before");
}

memory::KindBackend& Link::kind() const { return *memory_.runtime().memory().backend(device_.kind); }

runtime::Task<Grant> Link::grant() {
  auto held = std::make_shared<Held>();
  const std::size_t landing_bytes = landings_.empty() ? 0 : landings_.front().size_bytes;
  held->words = co_await make_words(
      memory_, sizeof(Words) + all_packet_bytes(landing_bytes, landings_.size()), device_);
  held->own = static_cast<Words*>(held->words.buffer().data);
  Grant grant;
  grant.words = held->words.address();
  grant.num_landings = landings_.size();
  for (std::size_t i = 0; i < landings_.size(); ++i) {
    grant.size_bytes = landings_[i].size_bytes;
    held->landings.push_back(memory_.make_segment_at(landings_[i].data, landings_[i].size_bytes));
    grant.landings[i] = held->landings.back().address();
  }
  held_ = std::move(held);
  in_ = {};
  out_ = {};
  co_return grant;
}

runtime::Task<> Link::accept(int pe, const Grant& grant) {
  bool is_sound = grant.num_landings != 1 && grant.num_landings <= kMaxLandings &&
                  (grant.num_landings == 0 || grant.size_bytes > 0) && grant.words.pe() == pe;
  for (std::size_t i = 0; is_sound && i < grant.num_landings; ++i) is_sound = grant.landings[i].pe() == pe;
  if (!is_sound) base::refuse_claim(base::format("{}: PE {} grants places that are none", name_(), pe));
  PeerMemory peer(memory_, device_, name_);
  const std::size_t words_bytes = sizeof(Words) + all_packet_bytes(grant.size_bytes, grant.num_landings);
  held_->peers = static_cast<Words*>(co_await peer.reach(grant.words, words_bytes, alignof(Words)));
  for (std::size_t i = 0; i < grant.num_landings; ++i) {
    void* const landing = co_await peer.reach(grant.landings[i], grant.size_bytes, 1);
    held_->peer_landings.push_back(static_cast<std::byte*>(landing));
  }
  held_->peer_keepers = peer.take_keepers();
  num_peer_landings_ = grant.num_landings;
  message_bytes_ = grant.size_bytes;
  is_open_ = true;
}

// Counts and landings belong to one stream at a time.
void Link::order(Direction& direction, memory::StreamHandle stream) {
  if (direction.is_used && direction.stream != stream && !watch_.is_idle()) {
    if (kind().is_capturing(stream, device_.device) ||
        kind().is_capturing(direction.stream, device_.device)) {
      refuse(StatusCode::kInvalidArgument,
             "it goes on on another stream, and one of the two is being captured: await over() before");
    }
    const memory::EventHandle event = base::value_or_throw(kind().record(direction.stream, device_.device));
    const base::Status status = kind().stream_wait(stream, device_.device, event);
    kind().release_event(event);
    base::check(status);
  }
  direction.stream = stream;
  direction.is_used = true;
}

void Link::begin_send(const memory::ConstBuffer& message, memory::StreamHandle stream) {
  expect_open();
  if (num_peer_landings_ == 0)
    refuse(StatusCode::kInvalidArgument, "the peer has no landing, so it only sends");
  if (message.size_bytes != message_bytes_) {
    refuse(StatusCode::kInvalidArgument, base::format("a message of {} bytes does not fit: landings have {}",
                                                      message.size_bytes, message_bytes_));
  }
  if (message.place != device_) {
    refuse(StatusCode::kInvalidArgument,
           base::format("a message is on {}, and the stream on {}", memory::place_name(message.place),
                        memory::place_name(device_)));
  }
  order(out_, stream);
}

void Link::begin_receive(memory::StreamHandle stream) {
  expect_open();
  if (landings_.empty()) refuse(StatusCode::kInvalidArgument, "it has no landing, so it only sends");
  order(in_, stream);
}

MessageEnd Link::sending(const memory::ConstBuffer& message) const {
  const std::size_t at = next_place();
  const auto* const from = static_cast<const std::byte*>(message.data);
  MessageEnd end = memory::copy_end(held_->peer_landings[at], from, message.size_bytes);
  end.count = &held_->own->sent[at];
  end.waits = &held_->own->freed[at];
  end.signals = held_->peers->arrived[at];
  if (has_packets(message.size_bytes)) {
    end.side = MessageSide::kSendPackets;
    end.to = held_->peers->packets() + at * memory::packet_bytes(message.size_bytes);
  }
  return end;
}

MessageEnd Link::receiving(std::size_t& landing) const {
  const std::size_t num_landings = landings_.size();
  const std::size_t at = next_landing();
  const std::size_t before = (at + num_landings - 1) % num_landings;
  const memory::Buffer& to = landings_[at];
  MessageEnd end;
  end.side = MessageSide::kReceive;
  end.count = &held_->own->received[at];
  end.signals = &held_->peers->freed[before];
  end.freed = &held_->own->received[before].number;
  if (has_packets(to.size_bytes)) {
    end.side = MessageSide::kReceivePackets;
    end.to = static_cast<std::byte*>(to.data);
    end.from = held_->own->packets() + at * memory::packet_bytes(to.size_bytes);
    end.size_bytes = to.size_bytes;
  } else {
    end.waits = held_->own->arrived[at];
    end.parts = memory::message_parts(to.size_bytes);
  }
  landing = at;
  return end;
}

template <class Add>
void Link::launch(std::span<LinkSide> sides, memory::StreamHandle stream, Add add) {
  const Link& first = *sides.front().link;
  MessageQueue queue(first.kind(), first.device_, stream);
  for (LinkSide& side : sides) add(side, queue);
  try {
    queue.flush();
  } catch (...) {
    for (const LinkSide& side : sides) side.link->is_open_ = side.link->is_open_ && !queue.has_launched();
    throw;
  }
}

void Link::add_send(const LinkSide& side, MessageQueue& queue) {
  queue.add(sending(side.message), watch_, held_);
}

void Link::add_receive(LinkSide& side, MessageQueue& queue) {
  queue.add(receiving(side.landing), watch_, held_);
}

void Link::send(const memory::ConstBuffer& message, memory::StreamHandle stream) {
  begin_send(message, stream);
  LinkSide side{this, message};
  launch({&side, 1}, stream, [this](LinkSide& one, MessageQueue& queue) { add_send(one, queue); });
  ++out_.next;
}

std::size_t Link::receive(memory::StreamHandle stream) {
  begin_receive(stream);
  LinkSide side{this, {}};
  launch({&side, 1}, stream, [this](LinkSide& one, MessageQueue& queue) { add_receive(one, queue); });
  ++in_.next;
  return side.landing;
}

void Link::exchange(std::span<LinkSide> sides, memory::StreamHandle stream) {
  for (const LinkSide& side : sides) {
    if (side.link->device_ != sides.front().link->device_) {
      side.link->refuse(StatusCode::kInvalidArgument,
                        base::format("it is exchanged on {}, and its device is {}",
                                     memory::place_name(sides.front().link->device_),
                                     memory::place_name(side.link->device_)));
    }
    if (std::ranges::count(sides, side.link, &LinkSide::link) > 1)
      side.link->refuse(StatusCode::kInvalidArgument, "it is twice in an exchange");
    side.link->begin_send(side.message, stream);
    side.link->begin_receive(stream);
  }
  launch(sides, stream, [](LinkSide& side, MessageQueue& queue) {
    side.link->add_send(side, queue);
    side.link->add_receive(side, queue);
  });
  for (const LinkSide& side : sides) {
    ++side.link->out_.next;
    ++side.link->in_.next;
  }
}

void Link::reset() {
  is_open_ = false;
  held_ = nullptr;
}

runtime::Task<> Link::close() {
  if (held_ == nullptr) co_return;
  is_open_ = false;
  std::exception_ptr failure;  // of the streams: the peer does not wait for this end all the same
  try {
    co_await watch_.over();
  } catch (...) {
    failure = std::current_exception();
  }
  const std::shared_ptr<Held> held = std::exchange(held_, nullptr);
  held->peer_keepers.clear();
  runtime::Future<> words = std::move(held->words).release();
  std::vector<runtime::Future<>> landings;
  for (rma::Segment& landing : held->landings) landings.push_back(std::move(landing).release());
  co_await words;
  for (const runtime::Future<>& landing : landings) co_await landing;
  if (failure) std::rethrow_exception(failure);
}

}  // namespace weft::queued
