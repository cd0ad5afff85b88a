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
using memory::DeviceStep;

// An end's words, in memory of its device. Each is of one landing.
struct Link::Words {
  using List = std::uint32_t[kMaxLandings];
  // --- Of messages that arrive here
  List arrived;   // messages that the peer has written
  List received;  // the count of receives
  // --- Of messages to the peer
  List freed;  // messages that the peer has done with
  List sent;   // the count of sends
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
  held->words = co_await make_words(memory_, sizeof(Words), device_);
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
  held_->peers = static_cast<Words*>(co_await peer.reach(grant.words, sizeof(Words), alignof(Words)));
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

// What is queued for links on one stream, in steps that are launched when they are full.
class Link::Launches {
 public:
  Launches(const Link& link, memory::StreamHandle stream)
      : kind_(link.kind()), device_(link.device_), stream_(stream) {}

  // REQUIRES: a step has room, see make_room().
  DeviceStep& step() { return step_; }
  // For so many more words of each list, counts and copies.
  void make_room(std::size_t words, std::size_t counts, std::size_t copies) {
    constexpr std::size_t kMost = memory::kMaxStepPeers;
    const std::size_t most_words =
        std::max({step_.before.size, step_.signals.size, step_.after.size}) + words;
    if (most_words > kMost || step_.more_counts.size + counts > kMost ||
        step_.more_copies.size + copies > memory::kMaxMoreCopies) {
      flush();
    }
  }
  void flush() {
    if (step_.before.size + step_.signals.size + step_.after.size == 0) return;
    base::check(kind_.queue_step(std::exchange(step_, {}), device_, stream_));
    has_launched_ = true;
  }
  void add_copy(const memory::StepCopy& copy) {
    if (step_.size_bytes > 0) return step_.more_copies.add(copy);
    step_.to = copy.to;
    step_.from = copy.from;
    step_.size_bytes = copy.size_bytes;
  }
  bool has_launched() const { return has_launched_; }
  // By the copy engine, behind what has been launched.
  void copy(const memory::StepCopy& copy) {
    base::check(kind_.copy_async(copy.to, device_, copy.from, device_, copy.size_bytes, stream_));
  }

 private:
  memory::KindBackend& kind_;
  memory::Place device_;
  memory::StreamHandle stream_;
  bool has_launched_ = false;
  DeviceStep step_;
};

memory::StepCopy Link::copy_of(const LinkSide& side) {
  return {side.link->held_->peer_landings[side.link->next_place()],
          static_cast<const std::byte*>(side.message.data), side.message.size_bytes};
}

template <class Queue>
void Link::launch(std::span<LinkSide> sides, memory::StreamHandle stream, Queue queue) {
  Launches launches(*sides.front().link, stream);
  const auto note = [&] {
    for (const LinkSide& side : sides) side.link->watch_.note(side.link->device_, stream, side.link->held_);
  };
  try {
    queue(launches);
    launches.flush();
  } catch (...) {
    if (launches.has_launched()) {
      note();
      for (const LinkSide& side : sides) side.link->is_open_ = false;
    }
    throw;
  }
  note();
}

void Link::queue_sends(std::span<const LinkSide> sides, Launches& launches) {
  const auto add_wait = [&](const LinkSide& side) {
    Words& own = *side.link->held_->own;
    const std::size_t at = side.link->next_place();
    launches.step().before.add({&own.freed[at], 0, &own.sent[at]});
  };
  std::size_t bytes_of_steps = 0;
  const auto is_large = [&](const LinkSide& side) {
    if (bytes_of_steps + side.message.size_bytes > memory::kStepCopyLimitBytes) return true;
    bytes_of_steps += side.message.size_bytes;
    return false;
  };
  for (const LinkSide& side : sides) {
    if (!is_large(side)) continue;
    launches.make_room(1, 0, 0);
    add_wait(side);
  }
  launches.flush();
  bytes_of_steps = 0;
  for (const LinkSide& side : sides) {
    if (is_large(side)) launches.copy(copy_of(side));
  }
  bytes_of_steps = 0;
  for (const LinkSide& side : sides) {
    Held& held = *side.link->held_;
    const std::size_t at = side.link->next_place();
    launches.make_room(1, 1, 1);
    add_wait(side);  // of large ones, too: if the first wait is ended, there is no signal
    if (!is_large(side)) launches.add_copy(copy_of(side));
    launches.step().signals.add({&held.peers->arrived[at], 1, &held.own->sent[at]});
    launches.step().more_counts.add(&held.own->sent[at]);
  }
}

void Link::queue_receives(std::span<LinkSide> sides, Launches& launches) {
  for (LinkSide& side : sides) {
    Held& held = *side.link->held_;
    const std::size_t num_landings = side.link->landings_.size();
    const std::size_t at = side.link->next_landing();
    const std::size_t before = (at + num_landings - 1) % num_landings;
    launches.make_room(1, 1, 0);
    launches.step().signals.add({&held.peers->freed[before], 0, &held.own->received[before]});
    launches.step().after.add({&held.own->arrived[at], 1, &held.own->received[at]});
    launches.step().more_counts.add(&held.own->received[at]);
    side.landing = at;
  }
}

void Link::send(const memory::ConstBuffer& message, memory::StreamHandle stream) {
  begin_send(message, stream);
  LinkSide side{this, message};
  launch({&side, 1}, stream, [&](Launches& launches) { queue_sends({&side, 1}, launches); });
  ++out_.next;
}

std::size_t Link::receive(memory::StreamHandle stream) {
  begin_receive(stream);
  LinkSide side{this, {}};
  launch({&side, 1}, stream, [&](Launches& launches) { queue_receives({&side, 1}, launches); });
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
  launch(sides, stream, [&](Launches& launches) {
    queue_sends(sides, launches);
    queue_receives(sides, launches);
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
